// Writes the ranks' output to muster's own, in order and without loss.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

/// The destination of what ranks print: this process' own descriptors, or the launcher.
class output_sink {
  public:
    static constexpr int unshown = 0;  ///< in the place of a descriptor: what nobody wants to see, but counts as written

    /// Takes what a rank has written to `fd`, 1 or 2, in order. `stream` identifies the rank's stream.
    virtual void write(int fd, std::string block, void const* stream = nullptr) = 0;
    /// Does the same with a block that ends within a line, of which more will come.
    virtual void write_unfinished(int fd, std::string block, void const* stream) { write(fd, std::move(block), stream); }
    /// Takes a whole line of muster's messages, for standard error.
    virtual void note(std::string line) = 0;
    /// Returns whether to stop reading from the ranks for now, which then wait.
    virtual bool congested() const = 0;

  protected:
    ~output_sink() = default;
};

/// Writes blocks to descriptors 1 and 2 in the given order, on its own thread: a reader that does not read (less, a stopped
/// terminal) must not keep the launcher from noticing that ranks die. Used from one thread.
class output_writer final : public output_sink {
  public:
    output_writer();   ///< throws errc::system
    ~output_writer();  ///< drops what is not yet written: call `drain` first
    output_writer(output_writer const&) = delete;
    output_writer& operator=(output_writer const&) = delete;

    /// Output after an unfinished line of another stream begins a new line, unless it begins with a carriage return.
    void write(int fd, std::string block, void const* stream = nullptr) override;
    void write_unfinished(int fd, std::string block, void const* stream) override;
    void note(std::string line) override;  ///< begins a new line after an unfinished one

    /// Calls `seen` once when ranks, shown or not, write something that contains `mark`, with what is behind it there. Everything contains an empty mark.
    void watch_for(std::string mark, std::function<void(std::string_view behind)> seen) {
        watched_.emplace_back(std::move(mark), std::move(seen));
    }

    /// Returns whether more than `high_water_bytes` wait: then read no more from the ranks until `event_fd` is readable, and call
    /// `clear_event`.
    bool congested() const override;
    int event_fd() const noexcept;
    void clear_event() noexcept;

    /// Waits until all is written, for at most `seconds` (negative: without limit). Returns whether all was written.
    bool drain(double seconds);
    /// Does the same, but only for a moment: a reader that does not read must not hold a stopped run forever.
    void drain_briefly() { drain(brief_drain_s); }
    /// Does the same, until `interrupted` (called ten times a second) returns true.
    void drain_until(std::function<bool()> const& interrupted);
    /// Returns whether the reader of this descriptor has gone (EPIPE): what is written to it is dropped. `event_fd` reports it.
    bool broken(int fd) const;

    /// Returns errno of the first write that failed other than by a closed reader (a full disk); 0 if none did.
    int fault() const;
    /// Returns the same in words, for the user; empty if no write failed.
    std::string describe_fault() const;

    static constexpr std::size_t high_water_bytes = 8u << 20;
    static constexpr double brief_drain_s = 2;

  private:
    void put(int fd, std::string block, void const* stream);

    struct state;  // shared with the thread, which may outlive this object inside a write that never returns
    std::shared_ptr<state> state_;
    void const* unfinished_[3] = {nullptr, nullptr,
                                  nullptr};        ///< by descriptor: the stream whose unfinished line was written last
    bool within_line_[3] = {false, false, false};  ///< by descriptor: what was written last has not ended its line
    std::vector<std::pair<std::string, std::function<void(std::string_view)>>> watched_;
};

}  // namespace muster
