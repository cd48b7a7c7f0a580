#include "launch/ranks/rank_name.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace muster {

std::string name_of_rank(int rank, std::string_view host, int gpu_index, std::string_view gpu, int member) {
    std::string more = member < 0 ? "" : fmt::format("member {}", member);
    if (gpu_index >= 0) more += fmt::format("{}GPU {}{}{}", more.empty() ? "" : ", ", gpu_index, gpu.empty() ? "" : ", ", gpu);
    return fmt::format("rank {} on {}{}{}{}", rank, host, more.empty() ? "" : " (", more, more.empty() ? "" : ")");
}

std::string count_of_ranks(std::size_t count) {
    return fmt::format("{} {}", count, count == 1 ? "rank" : "ranks");
}

std::string list_some(std::span<std::string const> names, std::size_t count, std::string_view what) {
    auto const named = std::min(names.size(), most_named);
    auto const first = fmt::format("{}", fmt::join(names.first(named), ", "));
    return named < count ? fmt::format("{} and {} more {}", first, count - named, what) : first;
}

}  // namespace muster
