#include "comm/shm/rendezvous/rendezvous_wait.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>

#include "base/error.hpp"

namespace muster::shm {

double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int milliseconds_until(double when) {
    if (std::isinf(when)) return -1;
    return std::clamp(static_cast<int>(std::ceil((when - now_s()) * 1e3)), 0, 1'000'000);
}

bool wait_readable(int socket, double until) {
    pollfd wait{socket, POLLIN, 0};
    for (;;) {
        int const ready = ::poll(&wait, 1, milliseconds_until(until));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) throw_system("poll", "while the ranks meet");
        if (ready == 0 && now_s() >= until) return false;
    }
}

}  // namespace muster::shm
