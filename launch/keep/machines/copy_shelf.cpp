#include "launch/keep/machines/copy_shelf.hpp"

#include <algorithm>

#include "launch/keep/machines/keeping_guards.hpp"

namespace muster {

std::optional<copy_shelf::copy> copy_shelf::find(int part, std::uint64_t step, std::optional<std::uint64_t> generation) {
    std::optional<copy> latest;
    for (auto const& one : copies(part))
        if (one.step == step && (!generation || one.by.generation == *generation) && (!latest || one.number > latest->number))
            latest = one;
    return latest;
}

/// Returns the parts of ranks that run and have read what they had kept, or have committed.
std::vector<int> copy_shelf::owned_parts() const {
    auto all = parts();
    std::erase_if(all, [this](int part) { return !has_owner(part); });
    return all;
}

void copy_shelf::keep_from(std::uint64_t step) {
    for (int const part : parts()) {
        auto const kept = find(part, step);
        for (auto const& one : copies(part)) {
            if (kept ? one.number < kept->number : one.step < step)
                drop(one);
            else if (one == kept)
                hold(one);
            else
                release(one);
        }
    }
}

void copy_shelf::keep_only(std::uint64_t generation, std::uint64_t step) {
    for (int const part : parts())
        if (!has_owner(part))
            for (auto const& one : copies(part))
                if (one.by.generation != generation || (step != 0 && one.step != step)) drop(one);
}

void copy_shelf::drop_others(std::vector<int> const& these) {
    for (int const part : parts())
        if (std::find(these.begin(), these.end(), part) == these.end() && !has_owner(part)) drop_part(part);
}

void copy_shelf::release_all_but(std::uint64_t step) {
    for (int const part : parts()) {
        want(part, 0);  // for a part without an owner, too: its successor would hold a commit that nobody needs
        for (auto const& one : copies(part))
            if (one.held && one.step != step) release(one);
    }
}

std::optional<std::size_t> choose_slot(std::array<slot_use, kept::slots> const& all) {
    auto const newest = static_cast<std::size_t>(std::ranges::max_element(all, {}, &slot_use::age) - all.begin());
    std::optional<std::size_t> chosen;
    std::uint64_t oldest = UINT64_MAX;
    for (std::size_t slot = 0; slot < all.size(); ++slot) {
        bool const may_be_common = keeping::holds(keeping::guard::keeps_the_newest, slot == newest && all[slot].age > 1, false);
        if (all[slot].held || may_be_common || all[slot].age >= oldest) continue;
        if (slot < 2 || !chosen) chosen = slot, oldest = all[slot].age;
    }
    return chosen || all[newest].held ? chosen : newest;
}

}  // namespace muster
