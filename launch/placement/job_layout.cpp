#include "launch/placement/job_layout.hpp"

#include <fmt/format.h>

#include <numeric>
#include <optional>

#include "base/text.hpp"

namespace muster {

namespace {

std::optional<int> tasks_of_job(allocation const& given, environment const& variables) {
    if (auto const all = variables.get_int("SLURM_NTASKS")) return all;
    auto const each = variables.get_int("SLURM_NTASKS_PER_NODE");
    return each ? std::optional(*each * static_cast<int>(given.nodes.size())) : std::nullopt;
}

}  // namespace

std::vector<std::string> notes_on_layout(allocation const& given, placement_request const& wanted, mapping const& map,
                                         environment const& variables) {
    bool const in_step = parse_integer(variables.get_or("SLURM_STEP_ID", "-1")).value_or(-1) >= 0;
    if (given.scheduler != scheduler_kind::slurm || !given.narrowed_by.empty() || in_step) return {};
    std::vector<std::string> notes;
    bool const asked = wanted.ranks || wanted.nodes || wanted.ranks_per_node || wanted.slots_per_node || wanted.ranks_per_gpu > 1;
    int const gpus = std::accumulate(given.nodes.begin(), given.nodes.end(), 0,
                                     [](int sum, node const& one) { return sum + one.gpus.value_or(0); });
    int const ranks = map.world_size();
    auto const tasks = tasks_of_job(given, variables);
    if (!asked && gpus > 0 && tasks && *tasks != ranks)
        notes.push_back(
            fmt::format("the job was asked for with {} and has {}: {}, one for each GPU; -n {} starts one for each task",
                        counted(*tasks, "task"), counted(gpus, "GPU"), counted(ranks, "rank"), *tasks));
    auto const distribution = variables.get_or("SLURM_DISTRIBUTION", "");
    bool const deals_out = distribution.starts_with("cyclic") || distribution.starts_with("plane");
    if (deals_out && map.order == map_policy::slot && map.nodes_used() > 1)
        notes.push_back(
            fmt::format("the job's distribution (-m {}) is for srun's tasks: ranks fill one node after the other; --map-by node "
                        "puts one on each node in turn",
                        distribution));
    return notes;
}

}  // namespace muster
