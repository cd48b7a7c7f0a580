#include "launch/elastic/lives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "base/trust/foreign_json.hpp"

namespace muster {

using nlohmann::ordered_json;

namespace {

constexpr duration short_life{60};
constexpr std::size_t most_idle_lives = 2;  ///< lives in a row without progress

std::string line_of(ordered_json const& row) {
    return row.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

void take_line(std::vector<program_life>& lives, ordered_json const& row) {
    int const number = row.at("life").get<int>();
    if (row.contains("code")) {
        if (lives.empty()) lives.emplace_back();
        auto& life = lives.back();
        life.code = row.at("code").get<int>();
        life.measured = row.at("measured").get<bool>();
        life.saved_step = row.value("saved_step", life.saved_step);
        life.standstill = row.at("standstill").get<std::string>();
    } else if (row.at("generation").get<int>() > 0 && !lives.empty()) {
        lives.back().number = number;
    } else {
        lives.push_back({.number = number, .job = row.at("job").get<std::string>()});
    }
}

}  // namespace

int life_number(std::span<program_life const> former, int chain_link, int restarts) {
    int const told = std::max(chain_link - 1, 0) + std::max(restarts, 0);
    return former.empty() ? told : std::max(told, former.back().number + 1);
}

std::string find_standstill(progress_signs const& signs, bool judges_failures) {
    using enum progress_signs::ending;
    using measured = progress_signs::measured;
    if (signs.code == 0 || signs.ended == from_outside) return {};
    if (!signs.must_grow.empty())
        return signs.grew ? std::string() : fmt::format("{} has not grown (--must-grow)", signs.must_grow);
    if (signs.metric == measured::now || signs.saved_further || signs.ended == saved) return {};
    if (signs.metric == measured::before) return "no line with muster-metric: was written";
    if (!judges_failures || signs.lived >= short_life) return {};
    return fmt::format("it ended with code {} after {}", signs.code, format_duration(signs.lived));
}

std::string why_no_more(std::span<program_life const> lives) {
    if (lives.size() < most_idle_lives) return {};
    auto const last = lives.last(most_idle_lives);
    if (std::any_of(last.begin(), last.end(), [](program_life const& one) { return one.standstill.empty(); })) return {};
    auto const name = [](program_life const& one) {
        return one.job.empty() ? fmt::format("life {}", one.number) : fmt::format("life {} (job {})", one.number, one.job);
    };
    return fmt::format("{} and {} made no progress: {}", name(last.front()), name(last.back()), last.back().standstill);
}

std::string began_line(program_life const& life, int generation) {
    return line_of({{"life", life.number}, {"job", life.job}, {"generation", std::max(generation, 0)}});
}

std::string ended_line(program_life const& life) {
    return line_of({{"life", life.number},
                    {"code", life.code.value_or(-1)},
                    {"measured", life.measured},
                    {"saved_step", life.saved_step},
                    {"standstill", life.standstill}});
}

std::vector<program_life> parse_lives(std::string_view text) {
    std::vector<program_life> lives;
    for (auto const line : split(text, '\n')) {
        auto const row = parse_json_or_discard<ordered_json>(line);
        if (!row.is_object()) continue;
        try {
            take_line(lives, row);
        } catch (ordered_json::exception const&) {
        }
    }
    return lives;
}

}  // namespace muster
