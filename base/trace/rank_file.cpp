#include "base/trace/rank_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <limits>
#include <system_error>

#include "base/log.hpp"
#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"

namespace muster {

namespace {

std::optional<int> number_in(std::string_view text) {
    auto const number = parse_integer(text);
    if (!number || *number < 0 || *number > std::numeric_limits<int>::max()) return std::nullopt;
    return static_cast<int>(*number);
}

}  // namespace

std::string name_of(std::string_view kind, rank_file const& file) {
    return file.generation == 0 ? fmt::format("{}-{}.json", kind, file.rank)
                                : fmt::format("{}-g{}-{}.json", kind, file.generation, file.rank);
}

std::optional<rank_file> parse_rank_file(std::string_view kind, std::string_view name) {
    if (!name.starts_with(fmt::format("{}-", kind)) || !name.ends_with(".json")) return std::nullopt;
    name.remove_prefix(kind.size() + 1);
    name.remove_suffix(std::string_view(".json").size());
    rank_file file;
    if (name.starts_with('g')) {
        auto const end = std::min(name.find('-'), name.size());
        auto const generation = number_in(name.substr(1, end - 1));
        if (!generation || *generation == 0 || end == name.size()) return std::nullopt;
        file.generation = *generation;
        name.remove_prefix(end + 1);
    }
    auto const rank = number_in(name);
    if (!rank) return std::nullopt;
    file.rank = *rank;
    return file;
}

void remove_later_generations(std::string_view kind, std::string const& folder) noexcept {
    try {
        std::error_code problem;
        for (auto const& path : folder_entries(folder)) {
            auto const which = parse_rank_file(kind, path.filename().string());
            if (which && which->generation > 0) std::filesystem::remove(path, problem);
        }
    } catch (std::exception const& fault) {
        spdlog::debug("{}: {}", folder, fault.what());
    }
}

std::vector<found_rank_file> find_rank_files(std::string_view kind, std::string const& folder, std::string_view advice) {
    std::vector<found_rank_file> found;
    std::error_code problem;
    for (auto const& entry : std::filesystem::directory_iterator(folder, problem)) {
        std::error_code fault;
        auto const which = parse_rank_file(kind, entry.path().filename().string());
        if (which && entry.is_regular_file(fault)) found.push_back({*which, entry.path()});
    }
    if (found.empty())
        throw_error(errc::not_found, "{}: no files {}-RANK.json{}; {}", folder, kind,
                    problem ? " (" + problem.message() + ")" : "", advice);
    std::ranges::sort(found, {}, &found_rank_file::which);
    return found;
}

}  // namespace muster
