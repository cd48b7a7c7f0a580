#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/text.hpp"
#include "launch/hardware/gpu.hpp"

namespace muster {

namespace {

/// The scheduler whose job this process is in, as people call it; nothing outside of a job.
std::optional<std::string_view> scheduler_name(environment const& variables) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> signs{{{"SLURM_JOB_ID", "Slurm"},
                                                                                         {"PBS_JOBID", "PBS"},
                                                                                         {"COBALT_JOBID", "Cobalt"},
                                                                                         {"LSB_JOBID", "LSF"},
                                                                                         {"FLUX_URI", "Flux"},
                                                                                         {"FLUX_JOB_ID", "Flux"},
                                                                                         {"SLURM_JOBID", "Slurm"}}};
    for (auto const& [variable, name] : signs)
        if (variables.has(variable)) return name;
    return std::nullopt;
}

gpu make_gpu(std::string_view scheduler, std::string_view entry, int position) {
    gpu g;
    auto const index = parse_integer(entry);
    g.index = index && *index >= 0 && *index < 65536 ? static_cast<int>(*index) : position;
    if (!index) g.uuid = entry;
    g.name = fmt::format("{}'s {} {}", scheduler, scheduler == "Slurm" ? "gres/gpu" : "GPU", entry);
    g.known_to_driver = false;
    return g;
}

}  // namespace

gpu_list scheduler_gpus(environment const& variables) {
    auto const scheduler = scheduler_name(variables);
    if (!scheduler) return {};
    gpu_list list;
    auto const describe = [&](std::string_view variable, std::string_view value) {
        list.note = fmt::format("known to {} only ({}={}); no driver here sees them, so their NUMA node is unknown", *scheduler,
                                variable, value);
        return list;
    };
    for (auto const* name : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "SLURM_STEP_GPUS"}) {
        auto const value = variables.get(name);
        if (!value) continue;
        if (means_no_gpu(*value)) return {};
        for (auto const piece : split(*value, ',')) {
            if (trim(piece).empty() || list.gpus.size() == most_gpus_of_node) continue;
            list.gpus.push_back(make_gpu(*scheduler, trim(piece), static_cast<int>(list.gpus.size())));
        }
        return list.gpus.empty() ? gpu_list{} : describe(name, *value);
    }
    if (auto const text = variables.get("SLURM_GPUS_ON_NODE"))
        if (auto const count = parse_integer(trim(*text)); count && *count > 0 && *count <= most_gpus_of_node) {
            for (int i = 0; i < static_cast<int>(*count); ++i) list.gpus.push_back(make_gpu(*scheduler, std::to_string(i), i));
            return describe("SLURM_GPUS_ON_NODE", *text);
        }
    return {};
}

}  // namespace muster
