// Writes the ranks' output to muster's own, in order and without loss.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace muster {

/// The way on for what ranks print: this process' own descriptors, or the launcher.
class output_sink {
  public:
    /// Takes what a rank has written to `fd`, 1 or 2, in order. `stream` says which rank's.
    virtual void write(int fd, std::string block, void const* stream = nullptr) = 0;
    /// The same; the block ends within a line, of which more will come.
    virtual void write_unfinished(int fd, std::string block, void const* stream) { write(fd, std::move(block), stream); }
    /// Takes a whole line of muster's messages, for standard error.
    virtual void note(std::string line) = 0;
    /// Whether to read no more from the ranks for now, which then wait.
    virtual bool congested() const = 0;

  protected:
    ~output_sink() = default;
};

/// Writes blocks to descriptors 1 and 2 in the order given, on its own thread: a reader that does not read (less, a stopped
/// terminal) must not stop the launcher from seeing ranks die. Used from one thread.
class output_writer final : public output_sink {
  public:
    output_writer();   ///< throws errc::system
    ~output_writer();  ///< what is not yet written is dropped: call `drain` first
    output_writer(output_writer const&) = delete;
    output_writer& operator=(output_writer const&) = delete;

    /// What follows an unfinished line of another stream begins a new line, unless it begins with a carriage return itself.
    void write(int fd, std::string block, void const* stream = nullptr) override;
    void write_unfinished(int fd, std::string block, void const* stream) override;
    void note(std::string line) override;  ///< begins a new line where an unfinished one was written last

    /// Calls `seen` when ranks write something that holds `mark`, once. An empty mark is in everything.
    void watch_for(std::string mark, std::function<void()> seen) { watched_.emplace_back(std::move(mark), std::move(seen)); }

    /// More than `high_water_bytes` wait: read no more from the ranks until `event_fd` becomes readable, then call `clear_event`.
    bool congested() const override;
    int event_fd() const noexcept;
    void clear_event() noexcept;

    /// Waits until all is written, at most `seconds` (negative: without end). True if it was.
    bool drain(double seconds);
    /// The same, at most for a moment: a reader that does not read must not hold a stopped run for ever.
    void drain_briefly() { drain(brief_drain_s); }
    /// The same, until `interrupted` (asked ten times a second) is true.
    void drain_until(std::function<bool()> const& interrupted);
    /// Whether the reader of this descriptor has gone (EPIPE): what is written to it is dropped. `event_fd` tells when.
    bool broken(int fd) const;

    /// errno of the first write that failed otherwise than by a reader that has gone (a full disk); 0 if none did.
    int fault() const;
    /// The same in words, for the user; empty if none did.
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
    std::vector<std::pair<std::string, std::function<void()>>> watched_;
};

}  // namespace muster
