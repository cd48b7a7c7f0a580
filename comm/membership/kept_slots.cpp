#include "comm/membership/kept_slots.hpp"

#include <algorithm>
#include <utility>

namespace muster {

std::vector<std::size_t> slots_for_commit(kept_slots const& all, std::size_t newest) {
    std::vector<std::size_t> order;
    for (std::size_t which = 0; which < all.size(); ++which)
        if (which != newest) order.push_back(which);
    auto const age = [&](std::size_t which) { return all[which].number == 0 ? UINT64_MAX : all[which].number; };
    std::ranges::stable_sort(order, {}, age);
    return order;
}

other_history find_other_history(kept_slots const& all, std::uint64_t step) {
    other_history found;
    for (std::size_t which = 0; which < all.size(); ++which) {
        auto const& one = all[which];
        if (is_later(one, step))
            found.later.push_back(which);
        else if (one.whole && (found.last == kept::slots || one.number > all[found.last].number))
            found.last = which;
    }
    if (found.last == kept::slots) found.later.clear();
    return found;
}

kept_commits continue_from(kept_slots const& found) {
    kept_commits its;
    for (std::size_t which = 0; which < found.size(); ++which)
        if (found[which].whole && found[which].number >= its.last) its.last = found[which].number, its.newest = which;
    return its;
}

std::vector<std::size_t> begin_commit(kept_commits& its, kept_slots const& all, std::uint64_t step) {
    if (std::exchange(its.has_committed, true)) return {};
    auto other = find_other_history(all, step);
    if (!other.later.empty()) its.newest = other.last;
    return std::move(other.later);
}

bool is_later(kept_slot const& one, std::uint64_t step) {
    return one.number != 0 && one.step >= step;
}

std::uint64_t end_commit(kept_commits& its, std::size_t which) {
    its.newest = which;
    return ++its.last;
}

}  // namespace muster
