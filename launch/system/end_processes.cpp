#include "launch/system/end_processes.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "launch/system/process_tree.hpp"

namespace muster {

void end_descendants(int signal_number) noexcept {
    signal_descendants(signal_number);
    signal_descendants(SIGCONT);
}

duration wait_before_kill(int signal_number, std::optional<event_loop::clock::time_point> grace_ends,
                          event_loop::clock::time_point now) noexcept {
    if (signal_number != SIGTERM || !grace_ends) return leftover_patience;
    return std::max<duration>(leftover_patience, *grace_ends - now);
}

void set_grace_timers(event_loop& loop, int signal_number, duration grace, std::function<void()> terminate,
                      std::function<void()> kill) {
    if (signal_number == SIGINT) loop.after(grace / 2, std::move(terminate));
    loop.after(grace, std::move(kill));
}

void kill_all_descendants() noexcept {
    // A process may fork while the list is read, hence the loop; each round waits for deaths, not for time.
    for (int round = 0; round < 1000; ++round) {
        while (::waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        if (signal_descendants(SIGKILL) == 0) return;
        sigset_t child;
        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        timespec const at_most{0, 5'000'000};
        ::sigtimedwait(&child, nullptr, &at_most);
    }
}

}  // namespace muster
