#include "launch/signals.hpp"

#include <signal.h>

namespace muster {

bool is_ignored(int signal_number) noexcept {
    struct sigaction action {};
    return ::sigaction(signal_number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace muster
