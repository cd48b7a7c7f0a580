#include "launch/ranks/rank_name.hpp"
#include "base/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace muster {

namespace {

std::string name_of(std::string_view what, int number, std::string_view host, int gpu_index, std::string_view gpu, int member) {
    std::string more = member < 0 ? "" : fmt::format("member {}", member);
    if (gpu_index >= 0) more += fmt::format("{}GPU {}{}{}", more.empty() ? "" : ", ", gpu_index, gpu.empty() ? "" : ", ", gpu);
    return fmt::format("{} {} on {}{}{}{}", what, number, host, more.empty() ? "" : " (", more, more.empty() ? "" : ")");
}

}  // namespace

std::string name_of_rank(int rank, std::string_view host, int gpu_index, std::string_view gpu, int member) {
    return name_of("rank", rank, host, gpu_index, gpu, member);
}

std::string name_of_spare(int spare, std::string_view host, int gpu_index, std::string_view gpu) {
    return name_of("spare", spare, host, gpu_index, gpu, -1);
}

std::string count_of_ranks(std::size_t count) {
    return counted(static_cast<std::int64_t>(count), "rank");
}

std::string count_of_spares(std::size_t count) {
    return counted(static_cast<std::int64_t>(count), "spare");
}

std::string list_some(std::span<std::string const> names, std::size_t count, std::string_view what) {
    auto const named = std::min(names.size(), most_named);
    auto const first = fmt::format("{}", fmt::join(names.first(named), ", "));
    return named < count ? fmt::format("{} and {} more {}", first, count - named, what) : first;
}

}  // namespace muster
