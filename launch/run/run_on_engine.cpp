#include "launch/run/run_on_engine.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/command/print_note.hpp"
#include "base/environment.hpp"
#include "base/process/files.hpp"
#include "base/process/this_process.hpp"
#include "launch/engine/engine_job.hpp"
#include "launch/engine/engine_table.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/ranks/rank_stream.hpp"
#include "launch/ranks/rank_variables.hpp"
#include "launch/ranks/start_limits.hpp"
#include "launch/record/sample_record.hpp"
#include "launch/run/remote/remote_group.hpp"
#include "launch/run/remote/remote_output.hpp"
#include "launch/run/run_supervisor.hpp"
#include "launch/system/network.hpp"
#include "pmix/member_message.hpp"

namespace muster {

namespace {

std::vector<remote_rank> make_ranks(run_context const& run, run_preparation const& prepared, std::string_view engine) {
    auto const& options = run.options;
    auto const& map = run.map;
    auto places = map.places();
    auto const size = places.size();
    for (auto const& one : run.waiting.places()) places.push_back(one);
    wire::job common;
    common.place = options.place;
    common.working_dir = prepared.working_dir.empty() ? absolute_path(".") : prepared.working_dir;
    auto const large = std::make_shared<common_job>(common_job{prepared.sent_variables, options.command, options.exports, {}});
    for (std::size_t r = 0; !run.kept.parts.empty() && r < places.size(); ++r)
        large->kept_parts.push_back(run.kept.part_of(static_cast<int>(r)));
    common.python_package = prepared.python.package;
    common.python_horovod = prepared.python.horovod;
    common.output_dir = options.output_dir.empty() ? "" : absolute_path(options.output_dir);
    auto most_on_a_node = *std::ranges::max_element(map.ranks_per_node);
    for (int const each : run.waiting.ranks_per_node) most_on_a_node = std::max(most_on_a_node, each);
    common.output_window =
        remote_output::window(places.size(), engine == "remote" ? static_cast<std::size_t>(most_on_a_node) : 1);
    common.own_step = engine == "srun";
    common.network_interface = options.network_interface;
    common.grace = options.grace;
    common.sample = pause_of_samples(run);
    common.lost_after = options.lost_after();
    common.hold_worker_port = prepared.lists_workers;
    common.file_mask = read_umask();
    common.keeps_state = !run.kept.files.empty();
    // Idle nodes are used at a restart, before the world shrinks; warm spares may be used up after one restart.
    bool const goes_on = !prepared.spares.empty() || options.discovery.given() ||
                         (options.least_ranks && (options.spares == 0 || options.warm_spares));
    common.in_place = goes_on && places.size() <= elastic::most_over_nodes;
    // A job script's ulimit holds for all of its nodes, but a login node's limits say nothing about them.
    if (std::ranges::any_of(run.given.nodes, is_this_host)) common.limits = read_own_limits();
    std::vector<remote_rank> ranks(places.size());
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        auto& rank = ranks[r];
        rank.node = places[r].node;
        auto const node = static_cast<std::size_t>(rank.node);
        rank.job = common;
        rank.common = large;
        rank.job.who = r < size ? prepared.ranks[r] : prepared.spares[r - size];
        rank.spare = spare_of(rank.job.who);
        rank.job.place = with_share(options.place, run.given, run.given.nodes[node]);
        rank.job.address = run.given.nodes[node].address;
        if (node < run.kept.files.size()) rank.job.kept_file = run.kept.files[node];
    }
    return ranks;
}

/// Prints what the launcher knows of a rank's environment; only the engine and the node know the rest.
void print_environment(wire::job const& job) {
    auto variables = rank_environment(job.variables, {}, job.own_step);
    complete_variables(variables, {job.who, {}, {}, job.exports, job.command, {job.python_package, job.python_horovod}});
    std::vector<std::string> left_open{"MASTER_ADDR", "MASTER_PORT", "JAX_COORDINATOR_ADDRESS", "JAX_COORDINATOR_PORT",
                                       "TF_CONFIG"};
    if (!job.variables.has("OMP_NUM_THREADS")) left_open.emplace_back("OMP_NUM_THREADS");
    auto const is_given = [&](std::string const& name) {
        return std::ranges::any_of(job.exports, [&](auto const& entry) { return entry.starts_with(name + "="); });
    };
    for (auto const& name : left_open)
        if (!is_given(name)) variables.unset(name);
    fmt::print(
        "{}# set on {} when the rank is placed there: {}, CUDA_VISIBLE_DEVICES, MUSTER_GPU_INDEX, MUSTER_GPU_UUID, MUSTER_CPUS, "
        "GLOO_SOCKET_IFNAME, and the engine's own\n",
        variables.shell_lines(), job.who.host, fmt::join(left_open, ", "));
}

}  // namespace

int run_on_engine(run_context const& run, run_preparation const& prepared) {
    auto const& options = run.options;
    // The printed commands are for a later shell, and this run's folder will be gone by then.
    auto const job = describe_engine_job(run, run.map, options.dry_run ? absolute_path(".") : run.session_dir);
    std::vector<std::string> tried;
    auto const& engine = choose_engine(job, run.sources, options.is_elastic() ? "remote" : options.engine, &tried);
    if (options.verbose)
        for (auto const& line : tried) fmt::print(stderr, "muster: {}\n", line);

    end_phase("engine chosen");
    auto ranks = make_ranks(run, prepared, engine.name);
    auto command = engine.command(job, run.sources);
    if (auto const note = note_on_size(job, run.sources, engine.name); !note.empty() && !options.quiet) print_note(note);
    if (!command.note.empty() && !options.quiet) print_note(command.note);
    if (options.dry_run) {
        fmt::print("{}", shell_text(command, run.inherited));
        return 0;
    }
    if (options.print_env) {
        evidence known;
        remote_ranks const all(std::move(ranks), known);
        print_environment(all.job_of(*(all.begin() + *options.print_env)));
        return 0;
    }
    run_supervisor watch(run);
    remote_group group(run, watch.loop(), watch.writer(), watch.events(), engine, std::move(ranks));
    group.direct_shims(std::move(command), job);
    int const code = watch.run(group);
    end_phase("ranks and engine ended");
    return code;
}

}  // namespace muster
