#include "bench/study/study_demands.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "bench/study/findings.hpp"
#include "bench/tools/options.hpp"

namespace muster {

study_demands read_study_demands(given_options const& given) {
    study_demands out;
    for (auto const& text : given.all("expect")) out.expectations.push_back(parse_expectation(text));
    out.baseline = given.text("baseline");
    if (given.has("tolerance") && out.baseline.empty())
        throw error(errc::usage, "--tolerance is of a --baseline, and there is none; give that too");
    out.tolerance = parse_share(given.text("tolerance"), "--tolerance", 10);
    return out;
}

std::vector<judgement> judge_study(study const& results, study_demands const& demands, study const* baseline) {
    auto const rows = scaling_rows(results);
    std::vector<judgement> all;
    for (auto const& wanted : demands.expectations)
        for (auto& each : judge(wanted, rows, results.plan)) all.push_back(std::move(each));
    if (baseline != nullptr)
        for (auto& each : compare_with_baseline(results, *baseline, demands.tolerance)) all.push_back(std::move(each));
    return all;
}

namespace {

struct wanted_metric {
    std::string option, name;
    std::vector<int> of;  ///< numbers of ranks that must all have run before it counts as missing
};

bool is_missing(wanted_metric const& wanted, std::vector<study_run> const& made) {
    for (int const ranks : wanted.of) {
        bool ran = false;
        for (auto const& run : made) {
            if (run.ranks != ranks || run.status != run_status::ok) continue;
            ran = true;
            if (wanted.name == "wall_s" || std::ranges::find(run.metrics, wanted.name, &metric_series::name) != run.metrics.end())
                return false;
        }
        if (!ran) return false;
    }
    return true;
}

std::vector<std::string> printed_metrics(std::vector<study_run> const& made) {
    std::vector<std::string> out;
    for (auto const& run : made)
        for (auto const& series : run.metrics)
            if (std::ranges::find(out, series.name) == out.end()) out.push_back(series.name);
    out.emplace_back("wall_s");
    return out;
}

}  // namespace

std::string unknown_metric(study_plan const& plan, study_demands const& demands, std::vector<int> const& ranks,
                           std::vector<study_run> const& made) {
    for (auto const& pattern : plan.patterns)
        if (is_missing({{}, pattern.name, ranks}, made))
            return fmt::format("--metric {}: no line of any run matches it", shell_quote(pattern_text(pattern)));
    std::vector<wanted_metric> all{{plan.judged.rate ? "--rate-metric" : "--time-metric", plan.judged.name, ranks}};
    for (auto const& choice : plan.choices) all.push_back({"--take", choice.name, ranks});
    for (auto const& each : demands.expectations) {
        if (each.metric == "speedup" || each.metric == "efficiency") continue;
        // A bound for every number of ranks is broken as soon as one does not print it.
        for (int const n : ranks)
            if (!each.ranks || *each.ranks == n) all.push_back({"--expect " + each.text, each.metric, {n}});
    }
    for (auto const& wanted : all)
        if (is_missing(wanted, made))
            return fmt::format("{}: no run{} printed {}; {}", wanted.option,
                               wanted.of.size() == 1 ? " of " + ranks_text(wanted.of.front()) : "", wanted.name,
                               known_metrics_text(wanted.name, printed_metrics(made)));
    return {};
}

bool none_broken(std::vector<judgement> const& judged) noexcept {
    return std::none_of(judged.begin(), judged.end(), [](auto const& each) { return each.came == expectation_outcome::broken; });
}

std::string judgements_text(std::vector<judgement> const& judged) {
    std::string out;
    for (auto const& each : judged) out += each.text + "\n";
    return out;
}

}  // namespace muster
