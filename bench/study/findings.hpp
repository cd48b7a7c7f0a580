// The findings of a scaling study name what keeps it from scaling, each with its figure and one piece of advice.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "bench/study/study.hpp"

namespace muster {

enum class cause {
    oversubscribed,  ///< more ranks than cores
    shared_core,     ///< ranks that are bound to the same core, though there are enough
    communication,   ///< waits for gradients
    input,           ///< waits for the next batch
    imbalance,       ///< a rank that takes longer than the others
    serial_part,     ///< time that does not shrink with more ranks
};
std::string_view to_string(cause why) noexcept;

struct scaling_finding {
    cause why = cause::serial_part;
    int ranks = 1;             ///< of the runs that show it
    double figure = 0;         ///< a part of the time, 0 to 1; for oversubscribed and shared_core, ranks of a core
    double low = 0, high = 0;  ///< ends of its spread; both are the figure if there is no spread
    std::string text;          ///< what was seen, with the figure
    std::string advice;        ///< one thing to do
    std::vector<std::pair<std::string, double>> values = {};  ///< by name: the other figures in `text`
    bool operator==(scaling_finding const&) const = default;
};

/// Return the part s of the time that does not shrink with n times the ranks, by least squares over (n, speed-up S): by Amdahl's
/// law 1/S = s + (1 - s)/n, for a fixed amount of work; by Gustafson's n - S = s (n - 1), for an amount that grows with n. Only n
/// > 1 count; 0 without such. Pure. (Amdahl, AFIPS 1967; Gustafson, CACM 31 (5), 1988.)
double amdahl_part(std::vector<std::pair<double, double>> const& speedups) noexcept;
double gustafson_part(std::vector<std::pair<double, double>> const& speedups) noexcept;

/// Returns the first rank about which the launcher says something in the output of a run: "muster: note: rank 5 on node3 kept the others waiting 37 % of the
/// time: its GPU ran …", or without the wait; lines of ranks begin with their tags. Pure.
std::optional<remarked_rank> read_remark(std::string_view output);

/// Returns what the largest number of ranks with enough cores shows, worst first; leaves out what is below a twentieth of the time.
/// Waiting is known of programs that print the metrics allreduce_wait_s, loader_wait_s (the lowest rank's count), and, on every rank,
/// compute_s. The rank that most runs' remarks name, with its reason, counts more than compute_s. Pure.
std::vector<scaling_finding> find_causes(study const& results);

/// Returns a line for each, for people; "" without findings.
std::string findings_text(std::vector<scaling_finding> const& all);

/// Returns "1 rank", "4 ranks".
inline std::string ranks_text(int ranks) {
    return counted(ranks, "rank");
}

/// Returns a part of 1 as "31%", or, below a tenth, "3.1%".
std::string percent_text(double part);

}  // namespace muster
