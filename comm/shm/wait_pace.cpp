#include "comm/shm/wait_pace.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>

namespace muster::shm {

namespace {

/// A process that yields falls behind all others that want the processor; one that slept runs soon. So after a few yields, enough
/// where only ranks share it, waiting is done in naps, which grow.
constexpr unsigned yields_before_naps = 16;
constexpr unsigned naps_of_a_length = 64;
constexpr long shortest_nap_ns = 10'000, long_nap_ns = 160'000, longest_nap_ns = 1'280'000;

/// A rank with a processor of its own gives it up for good only after some 10 ms: a nap then is below a hundredth of the wait.
constexpr unsigned yields_alone = 20'000;

void nap(unsigned number) noexcept {
    long length = shortest_nap_ns;
    for (unsigned i = naps_of_a_length; i <= number && length < longest_nap_ns; i += naps_of_a_length) length *= 2;
    timespec const time{0, length};
    if (length >= long_nap_ns) {
        ::nanosleep(&time, nullptr);
        return;
    }
    // As exact as that: by default the kernel may add 50 us.
    int const slack = ::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    ::prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
    ::nanosleep(&time, nullptr);
    if (slack > 0) ::prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
}

}  // namespace

void wait_pace::give_way(bool crowded, bool waited_long) noexcept {
    unsigned const patience = crowded ? yields_before_naps : yields_alone;
    if (waited_long) yields_ = std::max(yields_, patience);
    if (++yields_ <= patience)
        ::sched_yield();
    else
        nap(yields_ - patience);
}

bool wait_pace::is_short() const noexcept {
    return yields_ < yields_before_naps + naps_of_a_length;
}

}  // namespace muster::shm
