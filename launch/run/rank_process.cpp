#include "launch/run/rank_process.hpp"

#include <fmt/format.h>
#include <string.h>
#include <sys/wait.h>

namespace muster {

std::string name_of(rank_process const& rank) {
    auto const& gpu = rank.place.device;
    return name_of_rank(rank.who.rank, rank.who.host, gpu ? gpu->index : -1, gpu ? gpu->uuid : "");
}

std::string name_of_rank(int rank, std::string_view host, int gpu_index, std::string_view gpu) {
    std::string const device = gpu_index < 0 ? "" : fmt::format(" (GPU {}{}{})", gpu_index, gpu.empty() ? "" : ", ", gpu);
    return fmt::format("rank {} on {}{}", rank, host, device);
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
