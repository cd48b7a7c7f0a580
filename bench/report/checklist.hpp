// A reviewer's checklist of a scaling study: says for each of twelve rules whether the study follows it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/study/study.hpp"

namespace muster {

enum class rule_answer { not_known, yes, no };
std::string_view to_string(rule_answer answer) noexcept;

struct checked_rule {
    int number = 1;
    std::string rule;  ///< in our own words
    rule_answer answer = rule_answer::not_known;
    std::string reason;  ///< one sentence, from what was recorded
    bool operator==(checked_rule const&) const = default;
};

/// All twelve, in order, decided from the recorded data alone. Pure.
/// (T. Hoefler and R. Belli: Scientific Benchmarking of Parallel Computing Systems, SC'15, rules 1 to 12.)
std::vector<checked_rule> check_rules(study const& results);

}  // namespace muster
