#include "launch/engine/describe_engine_job.hpp"

#include "base/process/process.hpp"
#include "base/process/this_process.hpp"
#include "launch/ranks/exports.hpp"
#include "launch/scheduler/commands/slurm_commands.hpp"
#include "launch/scheduler/slurm/slurm_job.hpp"
#include "launch/system/absolute_path.hpp"
#include "launch/system/host_name.hpp"
#include "pmix/scrub.hpp"

namespace muster {

namespace {

/// The engine's process needs what Slurm said of the job, but nothing of an outer launcher.
environment engine_variables(environment const& inherited) {
    environment variables = inherited;
    pmix::scrub_inherited(variables);
    for (auto const name : {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"})
        if (auto const value = inherited.get(name)) variables.set(name, *value);
    return variables;
}

}  // namespace

engine_job describe_engine_job(run_context const& run, mapping const& map, std::string const& scratch_dir) {
    auto const& options = run.options;
    engine_job job;
    job.given = run.given;
    job.map = map;
    job.this_host = short_host_name();
    job.this_host_in_full = host_name();
    job.shim = {self_program().string(), "shim"};
    job.variables = engine_variables(run.inherited);
    apply_exports(job.variables, options.exports);
    leave_out(job.variables, options.unexported, options.exports);
    job.command = options.command;
    job.working_dir = options.working_dir;
    job.shim_variables = {"MUSTER_LAUNCHER", "MUSTER_TOKEN"};
    job.extra_arguments = options.engine_args;
    job.scratch_dir = scratch_dir;
    job.network_interface = options.network_interface;
    job.remote_shell = options.remote_shell;
    job.pass_key = options.pass_key;
    if ((job.pass_key == "auto" || job.pass_key == "munge") && job.given.scheduler == scheduler_kind::slurm)
        job.munge_socket = munge_socket(run.sources.run_command(slurm_words(slurm_ask::config)).out);
    job.in_steps = options.is_elastic();
    job.lost_after = options.lost_after();
    try {
        if (!options.command.empty()) job.program = find_program(options.command.front(), job.variables, options.working_dir);
    } catch (program_error const&) {
        job.program.clear();  // it may be on the nodes only; their shims report it if it is not
    }
    return job;
}

shim_directions_request directions_request(engine_job const& job, run_options const& options, std::string_view engine) {
    shim_directions_request request;
    request.interface = options.network_interface;
    request.pass_key = parse_key_way(options.pass_key);
    request.munge_socket = job.munge_socket;
    request.engine = engine;
    request.variables = job.variables;
    request.needed = {job.shim.front(), absolute_path(options.working_dir.empty() ? "." : options.working_dir)};
    for (auto const& host : rank_hosts(job)) {
        if (short_name(host) == job.this_host) continue;
        request.other_node = host;
        break;
    }
    return request;
}

}  // namespace muster
