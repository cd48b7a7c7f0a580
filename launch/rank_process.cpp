#include "launch/rank_process.hpp"

#include <fmt/format.h>
#include <string.h>
#include <sys/wait.h>

namespace muster {

std::string name_of(rank_process const& rank) {
    std::string const gpu =
        rank.place.device ? fmt::format(" (GPU {}, {})", rank.place.device->index, rank.place.device->uuid) : "";
    return fmt::format("rank {} on {}{}", rank.who.rank, rank.who.host, gpu);
}

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
