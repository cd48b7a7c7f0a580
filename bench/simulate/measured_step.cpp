#include "bench/simulate/measured_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.hpp"
#include "bench/study/scaling_table.hpp"
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

measured_step middle_of(std::vector<measured_step> all) {
    auto const middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end(), [](auto const& a, auto const& b) { return a.step_s < b.step_s; });
    return *middle;
}

}  // namespace

std::vector<measured_step> steps_of_study(nlohmann::json const& document, std::string const& origin) {
    checked_json const from(document, origin);
    auto const runs = from.at("runs");
    std::map<int, std::vector<measured_step>> by_ranks;
    for (auto const& run : runs.items()) {
        if (!counts(run)) continue;
        if (run.at("simulated").boolean()) run.at("simulated").fail("is true: a prediction rests on measured runs only");
        auto const ranks = static_cast<int>(run.at("ranks").integer(1, 1'000'000));
        by_ranks[ranks].push_back(step_of_run(run, ranks));
    }
    if (by_ranks.empty())
        runs.fail(
            "has no run of the built-in training that counts; for another program say how many steps a run makes with --steps, "
            "or "
            "give its compute to muster-bench simulate --compute-ms");
    std::vector<measured_step> out;
    for (auto& [ranks, all] : by_ranks) out.push_back(middle_of(std::move(all)));
    return out;
}

measured_step step_of_study(nlohmann::json const& document, std::string const& origin) {
    return steps_of_study(document, origin).front();
}

measured_step step_of_program(nlohmann::json const& document, std::string const& origin, double steps) {
    auto const results = read_study(document, origin);
    auto const rows = scaling_rows(results);
    auto const& judged = results.plan.judged;
    std::string const name = judged.rate ? "wall_s" : judged.name;
    for (auto const& row : rows) {
        if (row.simulated || !(row.median_of(name) > 0)) continue;
        double const step = row.median_of(name) / steps, input = row.median_of("loader_wait_s") / steps,
                     exposed = row.median_of("allreduce_wait_s") / steps;
        return {row.ranks, step, std::max(0.0, step - input - exposed), input, exposed};
    }
    throw error(errc::invalid_data,
                fmt::format("{}: no measured run told {}; a prediction rests on measured runs", origin, name));
}

}  // namespace muster
