#include "bench/study/study_demands.hpp"

#include <algorithm>

#include "bench/tools/options.hpp"

namespace muster {

study_demands read_study_demands(given_options const& given) {
    study_demands out;
    for (auto const& text : given.all("expect")) out.expectations.push_back(parse_expectation(text));
    out.baseline = given.text("baseline");
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

bool none_broken(std::vector<judgement> const& judged) noexcept {
    return std::none_of(judged.begin(), judged.end(), [](auto const& each) { return each.came == expectation_outcome::broken; });
}

std::string judgements_text(std::vector<judgement> const& judged) {
    std::string out;
    for (auto const& each : judged) out += each.text + "\n";
    return out;
}

}  // namespace muster
