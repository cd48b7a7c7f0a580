// The copies of ranks' states in one memory, and which of them stay: the rules, apart from the memory.
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

    virtual std::vector<int> parts() const = 0;      ///< that have anything
    virtual bool has_owner(int part) const = 0;      ///< a living process keeps its state there
    virtual std::vector<copy> copies(int part) = 0;  ///< the whole ones, as their heads say
    virtual std::vector<copy> sound_copies() = 0;    ///< of all parts; reads all of them
    /// Has the first commit of `step` or a later one held, be it there or not; 0: none. What is held now is in `copies`.
    virtual void want(int part, std::uint64_t step) = 0;
    virtual void hold(copy const& one) = 0;
    virtual void release(copy const& one) = 0;
    virtual void drop(copy const& one) = 0;
    virtual void drop_part(int part) = 0;

    /// The latest that was made of it, or that this generation has made.
    std::optional<copy> find(int part, std::uint64_t step, std::optional<std::uint64_t> generation = {});
    std::vector<int> owned_parts() const;
    /// Of what other nodes' ranks have committed: holds `step`, so that no copy that is under way takes its place, and drops what came before it.
    void keep_from(std::uint64_t step);
    /// Where no owner lives: drops all but what that generation has committed, and of that all but `step`, if it is not 0.
    void keep_only(std::uint64_t generation, std::uint64_t step);
    /// The same of all other parts than these.
    void drop_others(std::vector<int> const& parts);
    /// Of what ranks here have committed: only `step` stays held, and none is wanted.
    void release_all_but(std::uint64_t step);
};

/// One slot of a part, as a copy that comes finds it. `age`: 0, it was never used; 1, what it has is not whole; else the larger, the newer.
struct slot_use {
    bool held = false;
    std::uint64_t age = 0;
};

/// The oldest that is not held; of four no more than are needed. Nothing: each is. Pure.
std::optional<std::size_t> choose_slot(std::array<slot_use, kept::slots> const& all);

}  // namespace muster
