#include "bench/predict/simulation_job.hpp"

#include <nlohmann/json.hpp>

#include "bench/tools/checked_json.hpp"

namespace muster {

nlohmann::json to_json(simulation_job const& job) {
    return {{"platform", to_json(job.platform)},
            {"ranks", job.ranks},
            {"tensors", job.tensors},
            {"bucket_bytes", job.bucket_bytes},
            {"forward_s", job.forward_s},
            {"backward_s", job.backward_s},
            {"input_s", job.input_s}};
}

simulation_job read_job(nlohmann::json const& document) {
    checked_json const from(document, "the job of the simulator");
    simulation_job job{.platform = read_platform(from.at("platform").value()),
                       .ranks = static_cast<int>(from.at("ranks").integer(1, 1 << 16)),
                       .tensors = {},
                       .bucket_bytes = static_cast<std::size_t>(from.at("bucket_bytes").integer(1, std::int64_t{1} << 40)),
                       .forward_s = from.at("forward_s").number(),
                       .backward_s = from.at("backward_s").number(),
                       .input_s = from.at("input_s").number()};
    for (auto const& each : from.at("tensors").items())
        job.tensors.push_back(static_cast<std::size_t>(each.integer(0, std::int64_t{1} << 40)));
    return job;
}

nlohmann::json to_json(simulation_result const& result) {
    return {{"simulated", true}, {"step_s", result.step_s}, {"exposed_s", result.exposed_s}, {"backend", result.backend}};
}

simulation_result read_result(nlohmann::json const& document) {
    checked_json const from(document, "what the simulator printed");
    return {from.at("step_s").number(), from.at("exposed_s").number(), from.at("backend").text()};
}

}  // namespace muster
