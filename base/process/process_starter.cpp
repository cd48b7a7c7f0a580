#include "base/process/process_starter.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace muster {

namespace {

constexpr int most_on_their_way = 16;

/// Sanitizers keep a record of each thread, which a child that runs beside it would share.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool one_by_one = true;
#else
constexpr bool one_by_one = false;
#endif

}  // namespace

process_starter::process_starter(int count) {
    for (int i = 0; i < (one_by_one ? 0 : std::min(count - 1, most_on_their_way)); ++i)
        places_.push_back(std::make_unique<place>());
}

process_starter::~process_starter() {
    for (auto const& each : places_) free_place(*each);
}

pid_t process_starter::begin(process_request const& request) {
    if (!std::exchange(any_, true) || places_.empty()) return start_process(request);
    auto& one = places_[next_];
    next_ = (next_ + 1) % places_.size();
    free_place(*one);
    one->child.emplace(request);
    one->on_its_way = 1;
    pid_t const pid = one->child->clone(one->stack, CLONE_CHILD_CLEARTID, &one->on_its_way);
    if (pid >= 0) return pid;
    one->on_its_way = 0;
    one->child->throw_failure();
}

/// Waits for the child that has it.
void process_starter::free_place(place& one) noexcept {
    for (pid_t seen = 0; (seen = one.on_its_way) != 0;)
        ::syscall(SYS_futex, &one.on_its_way, FUTEX_WAIT, seen, nullptr, nullptr, 0);
    if (!one.child) return;
    if (one.child->failure().step != nullptr && !failed_) try {
            one.child->throw_failure();
        } catch (...) {
            failed_ = std::current_exception();
        }
    one.child.reset();
}

void process_starter::finish() {
    for (auto const& each : places_) free_place(*each);
    if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
}

}  // namespace muster
