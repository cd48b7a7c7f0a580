#include "bench/predict/simulation_job.hpp"

#include <nlohmann/json.hpp>

#include "bench/tools/checked_json.hpp"

namespace muster {

namespace {

std::vector<std::size_t> sizes_of(checked_json const& list) {
    std::vector<std::size_t> sizes;
    for (auto const& each : list.items()) sizes.push_back(static_cast<std::size_t>(each.integer(0, std::int64_t{1} << 40)));
    return sizes;
}

}  // namespace

nlohmann::json to_json(simulation_job const& job) {
    return {{"platform", to_json(job.platform)},
            {"ranks", job.ranks},
            {"bytes", job.bytes},
            {"tensors", job.tensors},
            {"bucket_bytes", job.bucket_bytes},
            {"forward_s", job.forward_s},
            {"backward_s", job.backward_s},
            {"input_s", job.input_s},
            {"steps", job.steps},
            {"ring_rounds", job.ring_rounds},
            {"slices", job.slices}};
}

simulation_job read_job(nlohmann::json const& document) {
    checked_json const from(document, "the job of the simulator");
    return {.platform = read_platform(from.at("platform").value()),
            .ranks = static_cast<int>(from.at("ranks").integer(1, 1 << 16)),
            .bytes = sizes_of(from.at("bytes")),
            .tensors = sizes_of(from.at("tensors")),
            .bucket_bytes = static_cast<std::size_t>(from.at("bucket_bytes").integer(1, std::int64_t{1} << 40)),
            .forward_s = from.at("forward_s").number(),
            .backward_s = from.at("backward_s").number(),
            .input_s = from.at("input_s").number(),
            .steps = static_cast<int>(from.at("steps").integer(1, 1000)),
            .ring_rounds = static_cast<int>(from.at("ring_rounds").integer(1, 1 << 16)),
            .slices = static_cast<int>(from.at("slices").integer(1, 100000))};
}

nlohmann::json to_json(simulation_result const& result) {
    auto list = nlohmann::json::array();
    for (auto const& each : result.allreduces) list.push_back({{"bytes", each.bytes}, {"seconds", each.seconds}});
    return {{"simulated", true},
            {"ranks", result.ranks},
            {"allreduces", list},
            {"step_s", result.step_s},
            {"exposed_s", result.exposed_s},
            {"backend", result.backend}};
}

simulation_result read_result(nlohmann::json const& document) {
    checked_json const from(document, "what the simulator printed");
    simulation_result result{.ranks = static_cast<int>(from.at("ranks").integer(1, 1 << 16)),
                             .allreduces = {},
                             .step_s = from.at("step_s").number(),
                             .exposed_s = from.at("exposed_s").number(),
                             .backend = from.at("backend").text()};
    for (auto const& each : from.at("allreduces").items())
        result.allreduces.push_back({static_cast<std::size_t>(each.at("bytes").integer()), each.at("seconds").number()});
    return result;
}

}  // namespace muster
