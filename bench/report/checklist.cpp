#include "bench/report/checklist.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "bench/study/findings.hpp"
#include "bench/study/scaling_table.hpp"

namespace muster {

namespace {

struct seen_study {
    study const& results;
    std::vector<scaling_row> rows;
    scaling_row const* base;
    std::size_t least_runs = 0;  ///< of the rows that have any
};

checked_rule base_case(seen_study const& s) {
    checked_rule out{1, "A speed-up tells what its base case is, and how fast that is in absolute terms.", {}, {}};
    if (s.base == nullptr || s.rows.size() < 2) {
        out.reason = "there is one number of ranks only, or none with a judged metric: no speed-up is shown";
        return out;
    }
    out.answer = rule_answer::yes;
    out.reason = fmt::format("the base is the same program on {}, not the best serial program; its {} is shown",
                             counted(s.base->ranks, "rank"), s.results.plan.judged.name);
    return out;
}

checked_rule subsets(seen_study const& s) {
    checked_rule out{2, "Where only a part of the machine or of a benchmark is used, the reason is given.", {}, {}};
    auto const most = s.rows.empty() ? 0 : s.rows.back().ranks;
    int nodes = 1;
    for (auto const& row : s.rows) nodes = std::max(nodes, row.nodes);
    bool const whole = nodes == 1 && most >= s.results.machine.cores;
    out.answer = whole ? rule_answer::yes : rule_answer::not_known;
    out.reason = whole
                     ? fmt::format("up to {} on the {} of the machine: nothing is left out", counted(most, "rank"),
                                   counted(s.results.machine.cores, "core"))
                     : fmt::format("up to {} on {}; why not more is not recorded", counted(most, "rank"), counted(nodes, "node"));
    return out;
}

checked_rule means(seen_study const& s) {
    checked_rule out{3, "Costs are summarised by the arithmetic mean only, rates by the harmonic mean.", rule_answer::yes,
                     "values are medians over the runs; no mean over runs is shown"};
    auto const& judged = s.results.plan.judged;
    for (auto const& choice : s.results.plan.choices)
        if ((choice.which == "mean" || choice.across == "mean") && (judged.rate && choice.name == judged.name)) {
            out.answer = rule_answer::no;
            out.reason = fmt::format("--take forms the arithmetic mean of {}, a rate; take the sum of the ranks or the median",
                                     choice.name);
        }
    return out;
}

checked_rule ratios(seen_study const&) {
    return {4, "Ratios are not summarised, but the costs or rates below them.", rule_answer::yes,
            "a speed-up is the ratio of two medians; no ratios are averaged"};
}

checked_rule determinism(seen_study const& s) {
    checked_rule out{
        5, "The report says whether values are deterministic; if they are not, it shows intervals.", rule_answer::no, {}};
    if (s.least_runs == 0)
        out.reason = "no run ended well";
    else if (s.least_runs < runs_for_interval)
        out.reason =
            fmt::format("times are not deterministic, and {} of a number of ranks give{} a range, no interval: --repeats {}",
                        counted(s.least_runs, "run"), s.least_runs == 1 ? "s" : "", runs_for_interval);
    else {
        out.answer = rule_answer::yes;
        out.reason =
            fmt::format("times are not deterministic; {} or more runs each give an interval of the median", s.least_runs);
    }
    return out;
}

checked_rule normality(seen_study const& s) {
    return {6, "No normal distribution is assumed without a check.", rule_answer::yes,
            s.least_runs < runs_for_interval ? "spreads are ranges of the values alone"
                                             : "intervals come from the order of the values alone"};
}

checked_rule comparison(seen_study const& s) {
    checked_rule out{7, "Values are compared in a statistically sound way, as by intervals that do not overlap.", {}, {}};
    std::size_t compared = 0, hidden = 0;
    for (auto const& row : s.rows)
        if (row.speedup && &row != s.base) {
            ++compared;
            hidden += row.speedup->within_spread ? 1 : 0;
        }
    if (compared == 0) {
        out.reason = "nothing is compared";
    } else if (s.least_runs < runs_for_interval) {
        out.answer = rule_answer::no;
        out.reason = "ratios whose ranges overlap are left out, but a range of few runs is no interval";
    } else {
        out.answer = rule_answer::yes;
        out.reason = hidden > 0 ? fmt::format("{} of {} lie within the spread and are not printed", hidden,
                                              counted(static_cast<int>(compared), "speed-up"))
                                : "the intervals of the compared times do not overlap";
    }
    return out;
}

checked_rule percentiles(seen_study const& s) {
    checked_rule out{8, "It is looked at whether median or mean say what matters, or other percentiles do.", rule_answer::yes,
                     "medians, spreads and every run are shown"};
    bool const in_steps = std::any_of(s.results.runs.begin(), s.results.runs.end(), [](auto const& run) {
        return std::any_of(run.metrics.begin(), run.metrics.end(), [](auto const& m) { return m.values.size() > 1; });
    });
    if (!in_steps) {
        out.answer = rule_answer::not_known;
        out.reason = "whole runs are timed; slow steps within a run are not recorded";
    }
    return out;
}

checked_rule factors(seen_study const& s) {
    auto const& r = s.results;
    std::vector<std::string> missing;
    if (r.machine.processor.empty()) missing.emplace_back("the processor");
    if (r.machine.system.empty() || r.machine.kernel.empty()) missing.emplace_back("the system");
    if (r.machine.governor.empty()) missing.emplace_back("the frequency governor");
    if (r.machine.clock_mhz <= 0) missing.emplace_back("the clock");
    if (std::any_of(r.points.begin(), r.points.end(), [](auto const& p) { return p.places.empty(); }) || r.points.empty())
        missing.emplace_back("where ranks ran");
    if (std::any_of(r.points.begin(), r.points.end(), [](auto const& p) { return p.nodes > 1; }))
        missing.emplace_back("the load of the other nodes");
    checked_rule out{9, "All varying factors, their levels and the whole set-up are documented.", rule_answer::yes,
                     "command, versions, machine, bindings, variables and load are in the context"};
    if (missing.empty()) return out;
    out.answer = rule_answer::no;
    out.reason = fmt::format("not visible: {}; the rest is in the context", join(missing, ", "));
    return out;
}

checked_rule timing(seen_study const& s) {
    checked_rule out{10, "The report says how parallel times are measured, synchronised and summarised.", rule_answer::yes, {}};
    if (s.results.plan.has_net()) {
        out.reason = "barriers, clocks and the maximum over the ranks are defined below";
    } else if (s.results.plan.judged.name == "wall_s") {
        out.reason = "wall_s is the whole command, seen from outside by one clock";
    } else {
        out.answer = rule_answer::not_known;
        out.reason =
            fmt::format("the program tells {}; how it synchronises its ranks is not recorded", s.results.plan.judged.name);
    }
    return out;
}

checked_rule bounds(seen_study const& s) {
    checked_rule out{11, "Upper bounds of the performance are shown where there are any.", rule_answer::no, {}};
    if (s.base == nullptr || s.rows.size() < 2) {
        out.reason = "nothing is compared";
        return out;
    }
    out.answer = rule_answer::yes;
    auto const causes = find_causes(s.results);
    bool const law = std::any_of(causes.begin(), causes.end(), [](auto const& c) { return c.why == cause::serial_part; });
    bool const cores = std::any_of(s.rows.begin(), s.rows.end(), [](auto const& r) { return r.oversubscribed; });
    out.reason = fmt::format("ideal speed-up{}{}; no model of the machine's peak", cores ? ", the bound by the cores" : "",
                             law ? ", and a fitted law" : "");
    return out;
}

checked_rule plots(seen_study const&) {
    return {12, "Plots hold what is needed to read them; points are joined only where a line between them means something.",
            rule_answer::yes, "points with their spreads, not joined; lines are models: the ideal and the bound by cores"};
}

}  // namespace

std::string_view to_string(rule_answer answer) noexcept {
    constexpr std::string_view names[]{"not known", "yes", "no"};
    return names[static_cast<std::size_t>(answer)];
}

std::vector<checked_rule> check_rules(study const& results) {
    seen_study s{results, scaling_rows(results), nullptr};
    s.base = base_row(s.rows, results.plan);
    for (auto const& row : s.rows)
        if (row.runs > 0) s.least_runs = s.least_runs == 0 ? row.runs : std::min(s.least_runs, row.runs);
    return {base_case(s),  subsets(s),     means(s),   ratios(s), determinism(s), normality(s),
            comparison(s), percentiles(s), factors(s), timing(s), bounds(s),      plots(s)};
}

}  // namespace muster
