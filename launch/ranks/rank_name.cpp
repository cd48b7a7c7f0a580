#include "launch/ranks/rank_name.hpp"

#include <fmt/format.h>

namespace muster {

std::string name_of_rank(int rank, std::string_view host, int gpu_index, std::string_view gpu) {
    std::string const device = gpu_index < 0 ? "" : fmt::format(" (GPU {}{}{})", gpu_index, gpu.empty() ? "" : ", ", gpu);
    return fmt::format("rank {} on {}{}", rank, host, device);
}

std::string count_of_ranks(std::size_t count) {
    return fmt::format("{} {}", count, count == 1 ? "rank" : "ranks");
}

}  // namespace muster
