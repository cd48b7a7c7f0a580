#include "launch/system/exit_status.hpp"

#include <fmt/format.h>
#include <string.h>
#include <sys/wait.h>

namespace muster {

std::string describe_end(int wait_status) {
    if (!WIFSIGNALED(wait_status)) return fmt::format("exited with code {}", WEXITSTATUS(wait_status));
    int const s = WTERMSIG(wait_status);
    char const* const name = ::sigabbrev_np(s);
    return fmt::format("was killed by signal {} ({}){}", s, name != nullptr ? fmt::format("SIG{}", name) : "real-time",
                       WCOREDUMP(wait_status) ? ", core dumped" : "");
}

int shell_code(int wait_status) noexcept {
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace muster
