#include "pmix/slurm_step.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "base/text.hpp"
#include "base/throw_error.hpp"

namespace muster {
namespace {

// Slurm's own steps (interactive, batch, extern, pending, …) have ids from 0xfffffff0 up; they run scripts and shells, no ranks.
constexpr std::int64_t first_reserved_step = 0xfffffff0;
constexpr std::size_t most_nodes = 1U << 20U;

std::optional<int> first_number(environment const& variables, std::initializer_list<std::string_view> names,
                                std::string_view* which = nullptr) {
    for (auto const name : names)
        if (auto const value = variables.get_int(name)) {
            if (*value < 0) throw_error(errc::parse, "{}={} is negative; unset it", name, *value);
            if (which != nullptr) *which = name;
            return value;
        }
    return std::nullopt;
}

bool is_step(environment const& variables) {
    auto id = variables.get("SLURM_STEP_ID");
    if (!id) id = variables.get("SLURM_STEPID");
    if (!id) return false;
    auto const number = parse_integer(trim(*id));
    return number && *number >= 0 && *number < first_reserved_step;
}

}  // namespace

std::vector<int> parse_tasks_per_node(std::string_view text, std::string_view origin) {
    std::vector<int> counts;
    std::size_t at = 0;
    auto const number = [&](std::string_view what, std::int64_t most) {
        auto end = at;
        while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
        auto const value = parse_integer(text.substr(at, end - at));
        if (!value || *value > most) throw parse_error(origin, text, at, fmt::format("expected {} here, at most {}", what, most));
        at = end;
        return *value;
    };
    for (;;) {
        auto const tasks = static_cast<int>(number("a number of tasks", INT32_MAX));
        std::size_t repeat = 1;
        if (text.substr(at).starts_with("(x")) {
            at += 2;
            repeat = static_cast<std::size_t>(number("a number of nodes", most_nodes));
            if (at >= text.size() || text[at] != ')') throw parse_error(origin, text, at, "expected ) here");
            ++at;
        }
        if (counts.size() + repeat > most_nodes)
            throw parse_error(origin, text, at, fmt::format("more than {} nodes", most_nodes));
        counts.insert(counts.end(), repeat, tasks);
        if (at == text.size()) return counts;
        if (text[at] != ',') throw parse_error(origin, text, at, "expected , or the end here");
        ++at;
    }
}

std::optional<slurm_step> read_slurm_step(environment const& variables) {
    if (!is_step(variables)) return std::nullopt;
    slurm_step step;
    auto const rank = first_number(variables, {"SLURM_PROCID"});
    if (!rank) return std::nullopt;
    step.rank = *rank;
    step.name = fmt::format("slurm.{}.{}", variables.get_or("SLURM_JOB_ID", variables.get_or("SLURM_JOBID", "0")),
                            variables.get_or("SLURM_STEP_ID", variables.get_or("SLURM_STEPID", "0")));
    step.host = variables.get_or("SLURMD_NODENAME", "");
    // The step's own count first: SLURM_NTASKS may be the job's where srun was given another number.
    step.tasks = first_number(variables, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"}, &step.tasks_variable);
    step.local_rank = first_number(variables, {"SLURM_LOCALID"});
    step.node_rank = first_number(variables, {"SLURM_NODEID"});
    step.nodes = first_number(variables, {"SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES", "SLURM_NNODES"});
    for (auto const* name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) {
        auto const text = variables.get(name);
        if (!text || !step.node_rank) continue;
        auto const counts = parse_tasks_per_node(trim(*text), name);
        auto const node = static_cast<std::size_t>(*step.node_rank);
        if (node >= counts.size())
            throw_error(errc::parse, "SLURM_NODEID={} lies outside of {}={} ({} nodes)", node, name, *text, counts.size());
        step.local_tasks = counts[node];
        break;
    }
    return step;
}

}  // namespace muster
