#include "comm/shm/co_progress.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

namespace muster::shm {

namespace {

// Outlives whatever is destroyed when the program ends.
struct circle {
    std::mutex guard;
    std::vector<neighbour*> members;
};
circle& all_of_this_process() {
    static auto* const made = new circle;
    return *made;
}

}  // namespace

neighbour::neighbour() {
    circle& all = all_of_this_process();
    std::scoped_lock const lock(all.guard);
    all.members.push_back(this);
}

void neighbour::leave() noexcept {
    circle& all = all_of_this_process();
    std::scoped_lock const lock(all.guard);
    std::erase(all.members, this);
}

void neighbour::drive_others() noexcept {
    circle& all = all_of_this_process();
    std::unique_lock const lock(all.guard, std::try_to_lock);
    if (!lock.owns_lock()) return;
    for (neighbour* const each : all.members) {
        if (each == this || each->busy_.test_and_set(std::memory_order_acquire)) continue;
        each->drive();
        each->busy_.clear(std::memory_order_release);
    }
}

}  // namespace muster::shm
