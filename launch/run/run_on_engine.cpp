#include "launch/run/run_on_engine.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/process/process.hpp"
#include "base/process/self_program.hpp"
#include "launch/engine/engine_table.hpp"
#include "launch/ranks/exports.hpp"
#include "launch/ranks/rank_environment.hpp"
#include "launch/ranks/rank_variables.hpp"
#include "launch/run/engine_supervisor.hpp"
#include "launch/system/host_name.hpp"
#include "pmix/scrub.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

/// The engine's process needs what Slurm said of the job, but nothing of an outer launcher.
environment engine_variables(environment const& inherited) {
    environment variables = inherited;
    pmix::scrub_inherited(variables);
    for (auto const name : {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"})
        if (auto const value = inherited.get(name)) variables.set(name, *value);
    return variables;
}

std::vector<remote_rank> make_ranks(run_options const& options, environment const& variables, allocation const& given,
                                    mapping const& map, bool own_step) {
    auto const places = map.places();
    int const size = static_cast<int>(places.size());
    std::vector<int> node_ranks(map.ranks_per_node.size(), -1);  // place among the nodes used
    int used = 0;
    for (std::size_t n = 0; n < node_ranks.size(); ++n)
        if (map.ranks_per_node[n] > 0) node_ranks[n] = used++;
    wire::job common;
    common.place = options.place;
    common.command = options.command;
    common.working_dir = absolute_path(options.working_dir.empty() ? "." : options.working_dir);
    common.variables = variables;
    common.exports = options.exports;
    common.output_dir = options.output_dir.empty() ? "" : absolute_path(options.output_dir);
    common.tag_output = options.tag_output;
    common.timestamp_output = options.timestamp_output;
    common.watch_output = options.idle_timeout.has_value();
    common.own_step = own_step;
    common.network_interface = options.network_interface;
    common.grace = options.grace;
    common.lost_after = options.heartbeat + duration(10);
    common.hold_worker_port = size <= most_tensorflow_workers;
    std::string const nspace = fmt::format("muster.{}.{}", short_host_name(), ::getpid());
    std::vector<remote_rank> ranks(places.size());
    for (int r = 0; r < size; ++r) {
        auto& rank = ranks[static_cast<std::size_t>(r)];
        rank.node = places[static_cast<std::size_t>(r)].node;
        auto const node = static_cast<std::size_t>(rank.node);
        rank.job = common;
        rank.job.who = {nspace,
                        r,
                        size,
                        places[static_cast<std::size_t>(r)].local_rank,
                        map.ranks_per_node[node],
                        node_ranks[node],
                        used,
                        given.nodes[node].name,
                        identity::source::muster};
        rank.job.address = given.nodes[node].address;
    }
    return ranks;
}

/// What the launcher knows of a rank's environment; the rest is the engine's and the node's to say.
void print_environment(wire::job const& job) {
    auto variables = rank_environment(job.variables, {}, job.own_step);
    set_rank_variables(variables, job.who, {}, {}, {"", 0, 0, {}, job.who.nspace});
    std::vector<std::string> left_open{"MASTER_ADDR", "MASTER_PORT", "JAX_COORDINATOR_ADDRESS", "JAX_COORDINATOR_PORT",
                                       "TF_CONFIG"};
    if (!job.variables.has("OMP_NUM_THREADS")) left_open.emplace_back("OMP_NUM_THREADS");
    for (auto const& name : left_open) variables.unset(name);
    set_explicit(variables, job.exports);
    fmt::print(
        "{}# set on {} when the rank is placed there: {}, CUDA_VISIBLE_DEVICES, MUSTER_GPU_INDEX, MUSTER_GPU_UUID, MUSTER_CPUS, "
        "GLOO_SOCKET_IFNAME, and the engine's own\n",
        variables.shell_lines(), job.who.host, fmt::join(left_open, ", "));
}

}  // namespace

std::string absolute_path(std::string const& wanted) {
    std::error_code fault;
    auto const path = fs::absolute(wanted, fault);
    if (fault) throw error(errc::not_found, fmt::format("{}: {}; change to a folder that exists", wanted, fault.message()));
    auto const normal = path.lexically_normal();
    return normal.has_filename() || !normal.has_relative_path() ? normal : normal.parent_path();
}

void write_files(engine_command const& command) {
    for (auto const& [path, contents] : command.files) {
        std::ofstream file(path, std::ios::binary);
        if (!(file << contents).flush()) throw error(errc::io, fmt::format("cannot write {}; is its folder full?", path));
    }
}

environment ranks_variables(run_options const& options, environment const& inherited) {
    environment variables = inherited;
    pmix::scrub_inherited(variables);
    apply_exports(variables, options.exports);
    return variables;
}

engine_job describe_engine_job(run_options const& options, environment const& inherited, allocation const& given,
                               mapping const& map, std::string const& scratch_dir) {
    engine_job job;
    job.given = given;
    job.map = map;
    job.this_host = short_host_name();
    job.shim = {self_program(), "shim"};
    job.variables = engine_variables(inherited);
    apply_exports(job.variables, options.exports);
    job.shim_variables = {"MUSTER_LAUNCHER", "MUSTER_TOKEN"};
    job.extra_arguments = options.engine_args;
    job.scratch_dir = scratch_dir;
    job.network_interface = options.network_interface;
    try {
        if (!options.command.empty()) job.program = find_program(options.command.front(), job.variables, options.working_dir);
    } catch (program_error const&) {
        job.program.clear();  // it may lie on the nodes only; their shims will say
    }
    return job;
}

int run_on_engine(run_options const& options, environment const& inherited, scheduler_sources const& sources,
                  allocation const& given, mapping const& map, std::string const& session_dir, int guardian_fd) {
    if (!map.note.empty() && !options.quiet) fmt::print(stderr, "muster: note: {}\n", map.note);
    if (options.print_env && *options.print_env >= map.world_size())
        throw error(errc::usage, fmt::format("--print-env {}: the {} ranks are 0 to {}", *options.print_env, map.world_size(),
                                             map.world_size() - 1));
    auto const job = describe_engine_job(options, inherited, given, map, session_dir);
    std::vector<std::string> tried;
    auto const& engine = choose_engine(job, sources, options.engine, &tried);
    if (options.verbose)
        for (auto const& line : tried) fmt::print(stderr, "muster: {}\n", line);

    auto ranks = make_ranks(options, ranks_variables(options, inherited), given, map, engine.name == "srun");
    auto command = engine.command(job, sources);
    if (!command.note.empty() && !options.quiet) fmt::print(stderr, "muster: note: {}\n", command.note);
    if (options.dry_run) {
        fmt::print("{}", shell_text(command, inherited));
        return 0;
    }
    if (options.print_env) {
        print_environment(ranks.at(static_cast<std::size_t>(*options.print_env)).job);
        return 0;
    }
    engine_supervisor watch(options, engine, std::move(ranks), given.ends_at, guardian_fd);
    for (auto const& [name, value] : watch.shim_variables()) command.variables.set(name, value);
    write_files(command);
    return watch.run(command);
}

}  // namespace muster
