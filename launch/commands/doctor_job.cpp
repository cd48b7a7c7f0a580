#include "launch/commands/doctor_job.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/process/process.hpp"
#include "base/text.hpp"
#include "launch/engine/engine_job.hpp"
#include "launch/engine/engine_table.hpp"
#include "launch/engine/engines.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/scheduler/commands/slurm_commands.hpp"
#include "launch/scheduler/read_allocation.hpp"

namespace muster {

namespace {

using state = finding::state;

bool is_here_alone(allocation const& given) {
    return given.nodes.size() == 1 && (given.scheduler == scheduler_kind::local || is_this_host(given.nodes.front()));
}

/// Examines Slurm's PMIx plugin, only if there is an srun that may start ranks.
void examine_slurm(std::vector<finding>& all, scheduler_sources const& sources, bool in_job) {
    auto const said = sources.run_command(slurm_words(slurm_ask::mpi_plugins));
    if (said.exit_status == 127) return;
    auto const plugins = parse_mpi_list(said.out + "\n" + said.err);
    if (!in_job && plugins.empty() && said.exit_status != 0) return;  // Slurm's programs on a machine without a cluster
    bool const pmix = std::ranges::any_of(plugins, [](auto const& name) { return name.starts_with("pmix"); });
    all.push_back({pmix ? state::ok : state::note, "Slurm's MPI plugins", plugins.empty() ? "none" : join(plugins, ", "),
                   pmix ? "" : "use --engine mpirun for Open MPI programs, or ask the site for Slurm with PMIx"});
}

/// Examines the job's scheduler or, outside of a job, the one that this machine belongs to.
void examine_scheduler(std::vector<finding>& all, scheduler_sources const& sources, scheduler_kind kind) {
    bool const in_job = kind != scheduler_kind::local;
    if (kind == scheduler_kind::slurm || (!in_job && !prefers_pbs(sources.variables))) return examine_slurm(all, sources, in_job);
    if (!in_job)
        all.push_back(describe_pbs(find_program_or_nothing("qsub", sources.variables),
                                   find_program_or_nothing("qstat", sources.variables)));
}

/// Returns the job's GPUs on this node; nothing outside of a job, in which no GPU is assigned.
std::optional<int> gpus_of_this_node(allocation const& given) {
    auto const here = std::ranges::find_if(given.nodes, is_this_host);
    return given.scheduler == scheduler_kind::local || here == given.nodes.end() ? std::nullopt : here->gpus;
}

void examine_engines(std::vector<finding>& all, run_plan const& run) {
    auto const& given = run.given;
    bool const alone = is_here_alone(given);
    all.push_back({alone ? state::ok : state::note, "engine embedded",
                   alone ? "starts the ranks on this node" : "starts ranks on this node only, and the job has others", ""});
    mapping one_each;
    one_each.ranks_per_node.assign(given.nodes.size(), 1);
    auto const job = describe_engine_job(run, one_each, "");
    bool any = alone;
    for (auto const& row : engines()) {
        auto const why = row.unavailable(job, run.sources);
        any = any || !why;
        all.push_back({why ? state::note : state::ok, fmt::format("engine {}", row.name),
                       why ? *why : fmt::format("can start ranks on {}", alone ? "this node" : "the job's nodes"), ""});
    }
    if (!any)
        all.push_back({state::missing, "engines", "none can start ranks on the other nodes",
                       "load the MPI that the program is built with, so that its mpirun or mpiexec is on PATH"});
}

}  // namespace

std::optional<int> examine_job(std::vector<finding>& all, run_options const& options, environment const& variables) {
    auto const sources = real_sources(variables, [&] { return node_of(discover_here(variables)); });
    try {
        run_plan run{options, variables, sources, ""};
        run.given = read_allocation(sources, options.from);
        auto const& given = run.given;
        all.push_back({state::ok, "job",
                       given.scheduler == scheduler_kind::local ? "none: ranks run on this node alone" : describe(given),
                       explain_unknown_gpus(given)});
        examine_scheduler(all, sources, given.scheduler);
        examine_engines(all, run);
        return gpus_of_this_node(given);
    } catch (error const& e) {
        all.push_back({state::missing, "job", e.what(), ""});
        return std::nullopt;
    }
}

}  // namespace muster
