#include "bench/simulate/measured_step.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/tools/checked_json.hpp"

namespace muster {

namespace {

bool counts(checked_json const& run) {
    if (run.has("warmup") && run.at("warmup").boolean()) return false;
    if (run.has("status") && run.at("status").text() != "ok") return false;
    return run.has("train") && !run.at("train").value().is_null();
}

measured_step step_of_run(checked_json const& run, int ranks) {
    double steps = 0, train = 0, exposed = 0, input = 0;
    auto const epochs = run.at("train").at("epochs_done");
    for (auto const& epoch : epochs.items()) {
        steps += epoch.at("steps").number();
        train += epoch.at("train_s").number();
        exposed += epoch.at("allreduce_wait_s").number();
        input += epoch.at("loader_wait_s").number();
    }
    if (!(steps > 0)) epochs.fail("has no steps");
    return {ranks, train / steps, std::max(0.0, train - exposed - input) / steps, input / steps, exposed / steps};
}

}  // namespace

measured_step step_of_study(nlohmann::json const& document, std::string const& origin) {
    checked_json const from(document, origin);
    auto const runs = from.at("runs");
    std::vector<measured_step> fewest;
    for (auto const& run : runs.items()) {
        if (!counts(run)) continue;
        if (run.at("simulated").boolean()) run.at("simulated").fail("is true: a prediction rests on measured runs only");
        auto const ranks = static_cast<int>(run.at("ranks").integer(1, 1'000'000));
        if (!fewest.empty() && ranks > fewest.front().ranks) continue;
        if (!fewest.empty() && ranks < fewest.front().ranks) fewest.clear();
        fewest.push_back(step_of_run(run, ranks));
    }
    if (fewest.empty())
        runs.fail(
            "has no run of the built-in training that counts; for another program give its compute to muster-bench simulate "
            "--compute-ms");
    auto const middle = fewest.begin() + static_cast<std::ptrdiff_t>(fewest.size() / 2);
    std::nth_element(fewest.begin(), middle, fewest.end(), [](auto const& a, auto const& b) { return a.step_s < b.step_s; });
    return *middle;
}

}  // namespace muster
