#include "comm/backend/processes/co_progress.hpp"

#include <mutex>
#include <vector>

namespace muster {

namespace {

// Outlives all objects that are destroyed when the program ends.
struct member_list {
    std::mutex guard;
    std::vector<co_progress*> members;
};
member_list& all_of_this_process() {
    static auto* const made = new member_list;
    return *made;
}

}  // namespace

void co_progress::enter() {
    member_list& all = all_of_this_process();
    std::scoped_lock const lock(all.guard);
    all.members.push_back(this);
}

void co_progress::leave() noexcept {
    member_list& all = all_of_this_process();
    std::scoped_lock const lock(all.guard);
    std::erase(all.members, this);
}

void co_progress::drive_others() noexcept {
    member_list& all = all_of_this_process();
    std::unique_lock const lock(all.guard, std::try_to_lock);
    if (!lock.owns_lock()) return;
    for (co_progress* const each : all.members) {
        if (each == this || each->busy_.test_and_set(std::memory_order_acquire)) continue;
        each->drive();
        each->busy_.clear(std::memory_order_release);
    }
}

}  // namespace muster
