#include "bench/predict/measured_step.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "bench/study/scaling_table.hpp"

namespace muster {

std::vector<measured_step> steps_of_study(study const& results, std::optional<double> steps, std::string const& origin) {
    auto const& judged = results.plan.judged;
    std::vector<measured_step> out;
    for (auto const& row : scaling_rows(results)) {
        if (row.simulated)
            throw error(errc::invalid_data, fmt::format("{}: is simulated; a prediction rests on measured runs only", origin));
        std::string const name = row.find("train_s") != nullptr ? "train_s" : judged.rate ? "wall_s" : judged.name;
        double const made = steps.value_or(row.median_of("steps")), time = row.median_of(name);
        if (!(time > 0)) continue;
        if (!(made > 0))
            throw error(errc::invalid_data,
                        fmt::format("{}: its program does not say how many steps a run makes; print the metric 'steps', or give "
                                    "--steps",
                                    origin));
        double const step = time / made, input = row.median_of("loader_wait_s") / made,
                     exposed = row.median_of("allreduce_wait_s") / made;
        out.push_back({row.ranks, step, std::max(0.0, step - input - exposed), input, exposed, row.oversubscribed});
    }
    if (out.empty())
        throw error(errc::invalid_data,
                    fmt::format("{}: no run that ended well told {}; a prediction rests on measured runs", origin, judged.name));
    return out;
}

}  // namespace muster
