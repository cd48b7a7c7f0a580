// Advice that was tried: the runs with and without it, taking turns, and whether it helped.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bench/tools/checked_json.hpp"
#include "bench/tools/statistics.hpp"

namespace muster {

/// One thing to do about a cause: what is changed for it, or why it cannot be tried, and the judged metric of each round's two runs.
struct tried_advice {
    std::string cause;  ///< as findings have it: "input"
    std::string advice;
    int ranks = 1;
    std::string change;                 ///< for people: "--bucket-bytes 1MiB"
    std::string not_tried;              ///< why; then the following are empty
    std::vector<std::string> launch;    ///< options of muster run of the changed runs
    std::vector<std::string> program;   ///< and what they run, with placeholders
    std::vector<std::string> settings;  ///< NAME=VALUE, in the environment of the changed runs
    std::string metric;
    bool rate = false;                  ///< more is better
    std::vector<double> before, after;  ///< one each a round, in which both ended well
    int failed = 0;                     ///< rounds in which one did not
    std::string failure;                ///< why the first of these did not
    bool operator==(tried_advice const&) const = default;
};

enum class advice_outcome { not_tried, failed, not_known, helped, hurt, within_spread };
std::string_view to_string(advice_outcome outcome) noexcept;

/// How many times as fast the changed runs were, round by round; nothing counted where there is no round.
summary times_as_fast(tried_advice const& tried);

/// It helped or hurt where the whole 95% interval of the ratio lies on one side of 1, which needs runs_for_interval rounds; of fewer
/// that are all on one side nothing is known. Pure.
advice_outcome outcome_of(tried_advice const& tried);

/// "it helped: 1.21 times as fast (1.18 to 1.24, 97% interval of 6 rounds taking turns) with --bucket-bytes 1MiB at 4 ranks", "not
/// known: faster in all 3 rounds (…) …; give --repeats 6".
std::string outcome_text(tried_advice const& tried);

/// A line for each, for people; "" where there are none.
std::string tried_text(std::vector<tried_advice> const& all);

/// With the outcome and the ratio, for programs that only read.
nlohmann::json to_json(tried_advice const& tried);
/// Throws errc::invalid_data with the place.
tried_advice read_tried_advice(checked_json const& from);

}  // namespace muster
