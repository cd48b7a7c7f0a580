#include "comm/membership/kept_slots.hpp"

#include <algorithm>

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
        if (one.number != 0 && one.step >= step)
            found.later.push_back(which);
        else if (one.whole && (found.last == kept::slots || one.number > all[found.last].number))
            found.last = which;
    }
    if (found.last == kept::slots) found.later.clear();
    return found;
}

}  // namespace muster
