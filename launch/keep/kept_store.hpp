// The copies of ranks' states in one file of memory, as a keeper sees them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "pmix/kept_layout.hpp"

namespace muster {

/// Only this user's processes can open its file, /proc/PID/fd/N. Use it from one thread; `read` may be called from any.
class kept_store {
  public:
    struct copy {
        int part = 0;
        std::size_t slot = 0;
        std::uint64_t number = 0, step = 0, bytes = 0, sum = 0;
        bool held = false;
        kept::origin by = {};
        bool operator==(copy const&) const = default;
    };

    kept_store() : kept_store(kept::make_memory()) {}
    explicit kept_store(unique_fd file) : file_(std::move(file)) {}
    ~kept_store();
    kept_store(kept_store const&) = delete;
    kept_store& operator=(kept_store const&) = delete;

    int fd() const noexcept { return file_.get(); }
    std::string path() const;  ///< by which processes of this node open it
    std::uint64_t id() const;  ///< by which they tell it from others
    /// Takes over the file of that id, which another process of this user on this node still has open. False, and nothing changes, where none has.
    bool adopt(std::uint64_t id);
    /// Called again and again while much is read.
    std::function<void()> on_progress = [] {};

    std::vector<int> parts() const;      ///< that have anything
    bool has_owner(int part) const;      ///< a living process keeps its state there
    std::vector<copy> copies(int part);  ///< the whole ones, as their heads say
    /// The latest that was made of it, or that this generation has made.
    std::optional<copy> find(int part, std::uint64_t step, std::optional<std::uint64_t> generation = {});
    std::vector<copy> sound_copies();      ///< of all parts; reads all of them
    bool is_sound(copy const& one) const;  ///< reads all of it

    /// Has the first commit of `step` or a later one held, be it there or not. What is held now is in `copies`.
    void want(int part, std::uint64_t step);
    void hold(copy const& one);
    void release(copy const& one);

    /// Reads from a copy that is held or whose owner is gone. Throws errc::system.
    void read(copy const& one, std::uint64_t at, std::span<std::byte> to) const;

    /// A place for a copy, where no owner lives: the oldest that is not held. Throws errc::system where memory is short, errc::invalid_data.
    copy begin(copy const& like);
    void write(copy const& one, std::uint64_t at, std::span<std::byte const> bytes);
    /// Whether it is whole; it is none of the copies before.
    bool finish(copy const& one);

    /// Of what other nodes' ranks have committed: holds `step`, so that no copy that is under way takes its place, and drops what came before it.
    void keep_from(std::uint64_t step);
    /// Where no owner lives: drops all but what that generation has committed, and of that all but `step`, if it is not 0.
    void keep_only(std::uint64_t generation, std::uint64_t step);
    /// The same of all other parts than these.
    void drop_others(std::vector<int> const& parts);
    void drop(copy const& one);
    void drop_part(int part);

  private:
    std::uint64_t size() const;
    void* page(std::uint64_t place);
    kept::head* head_of(int part, std::size_t slot);

    unique_fd file_;
    std::map<std::uint64_t, void*> pages_;
};

}  // namespace muster
