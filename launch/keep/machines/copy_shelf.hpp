// The copies of ranks' states in one memory, and which of them stay: the rules, independent of the memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "pmix/kept_layout.hpp"

namespace muster {

class copy_shelf {
  public:
    struct copy {
        int part = 0;
        std::size_t slot = 0;
        std::uint64_t number = 0, step = 0, bytes = 0, sum = 0;
        bool held = false;
        kept::origin by = {};
        bool operator==(copy const&) const = default;
    };

    copy_shelf() = default;
    virtual ~copy_shelf() = default;
    copy_shelf(copy_shelf const&) = delete;
    copy_shelf& operator=(copy_shelf const&) = delete;

    virtual std::vector<int> parts() const = 0;      ///< those with any copy
    virtual bool has_owner(int part) const = 0;      ///< a living process keeps its state there
    virtual std::vector<copy> copies(int part) = 0;  ///< the whole ones, according to their heads
    virtual std::vector<copy> sound_copies() = 0;    ///< those of all parts; reads all of them
    /// Requests that the first commit of `step` or a later one be held, whether it exists or not; 0: none. `copies` shows what is
    /// held now.
    virtual void want(int part, std::uint64_t step) = 0;
    virtual void hold(copy const& one) = 0;
    virtual void release(copy const& one) = 0;
    virtual void drop(copy const& one) = 0;
    virtual void drop_part(int part) = 0;

    /// Finds its latest copy, or the one that this generation has made.
    std::optional<copy> find(int part, std::uint64_t step, std::optional<std::uint64_t> generation = {});
    std::vector<int> owned_parts() const;
    /// Keeps what other nodes' ranks have committed from `step` on: holds that, so that no copy in progress replaces it, and
    /// drops older ones.
    void keep_from(std::uint64_t step);
    /// Drops, in parts without a living owner, all copies except for that generation's, and of these all except for `step`, if it
    /// is not 0.
    void keep_only(std::uint64_t generation, std::uint64_t step);
    /// Drops the parts other than these in the same way.
    void drop_others(std::vector<int> const& parts);
    /// Releases what ranks here have committed: only `step` stays held, and no commit is requested.
    void release_all_but(std::uint64_t step);
};

/// One slot of a part, for a copy that comes. `age` is 0 if it was never used, 1 if its content is not whole; else newer content
/// has a larger one.
struct slot_use {
    bool held = false;
    std::uint64_t age = 0;
};

/// Returns the oldest that is not held, and the newest only if the others are: the order to hold that may be on its way. Uses no
/// more of the four than needed. Returns nothing if all are held. Pure.
std::optional<std::size_t> choose_slot(std::array<slot_use, kept::slots> const& all);

}  // namespace muster
