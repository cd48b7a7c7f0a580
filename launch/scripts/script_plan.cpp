#include "launch/scripts/script_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "jobscripts/quote.hpp"
#include "launch/site/site_placement.hpp"

namespace muster {

namespace {

/// The numbers of nodes, and of ranks on each, for `gpus`.
struct shape {
    int nodes;
    int per_node;
};

/// Returns the hardware threads of a core.
int threads_per_core(site_node const& node) {
    return node.cores && node.cpus ? std::max(1, *node.cpus / *node.cores) : 1;
}

/// Returns "--ranks 8", or the option that it came from: "--sweep …,8".
std::string amount_text(script_options const& options, int amount) {
    auto const* const name = !options.sweep.empty() ? "sweep …," : options.ranks > 0 ? "ranks " : "gpus ";
    return fmt::format("--{}{}", name, amount);
}

/// Plans ranks without GPUs: at most one for each core of a node, the same number on each node.
shape shape_for_ranks(site const& where, script_options const& options, std::vector<std::string>& notes) {
    int const width = options.cpus_per_rank.value_or(1);
    auto const cores = where.node.cores ? where.node.cores : where.node.cpus;
    if (cores && width > *cores)
        throw_error(errc::usage, "--cpus-per-rank {}: a node of {} has {}; give at most that", width, where.name,
                    counted(*cores, "core"));
    auto const most = cores ? std::optional(*cores / width) : std::nullopt;
    if (most && options.ranks_per_node && *options.ranks_per_node > *most)
        throw_error(errc::usage, "--ranks-per-node {}: with {} for each, {} of {} has room for {}; give at most that",
                    *options.ranks_per_node, width == 1 ? "a core" : fmt::format("{} cores", width), "a node", where.name, *most);
    auto const per_node = options.ranks_per_node ? options.ranks_per_node : most;
    if (where.scheduler == script_kind::local || !per_node) {
        if (where.scheduler != script_kind::local && options.ranks > 1)
            notes.push_back(
                fmt::format("{} has no number of cores in a node, so one node is asked for all {} ranks; give "
                            "--ranks-per-node to divide them",
                            where.name, options.ranks));
        return {1, options.ranks};
    }
    int const nodes = (options.ranks + *per_node - 1) / *per_node;
    int const each = options.ranks_per_node && nodes > 1 ? *per_node : options.ranks / nodes;
    if (each * nodes == options.ranks) return {nodes, each};
    throw_error(errc::usage, "{} ranks do not divide evenly over {} of {} ({} ranks each at most); use {}, or {}", options.ranks,
                nodes_text(nodes), where.name, *per_node, amount_text(options, options.ranks / nodes * nodes),
                amount_text(options, options.ranks_per_node ? nodes * *per_node : (options.ranks / nodes + 1) * nodes));
}

/// Makes a sweep alone count GPUs if nodes have them, else ranks.
script_options with_sweep_counted(site const& where, script_options options) {
    if (options.gpus > 0 || options.ranks > 0 || options.sweep.empty()) return options;
    auto const largest = *std::ranges::max_element(options.sweep);
    if (where.node.gpus == 0 && (options.gpus_per_node || options.cpus_per_gpu))
        throw_error(errc::usage, "{}: a node of {} has no GPU (gpus = 0 in {}), so --sweep is of ranks; give {}",
                    options.gpus_per_node ? "--gpus-per-node" : "--cpus-per-gpu", where.name, where.file,
                    options.gpus_per_node ? "--ranks-per-node" : "--cpus-per-rank");
    (where.node.gpus == 0 ? options.ranks : options.gpus) = largest;
    return options;
}

/// Chooses between the GPUs and ranks that --once may both give: ranks if the site has no GPUs.
script_options options_at(site const& where, script_options options) {
    if (options.gpus == 0 || options.ranks == 0) return options;
    bool const without = !has_gpus(where).value_or(options.has_gpus) && !options.gpus_per_node && !options.cpus_per_gpu;
    (without ? options.gpus : options.ranks) = 0;
    return options;
}

shape shape_for(site const& where, script_options const& options, std::vector<std::string>& notes) {
    if (options.ranks > 0) return shape_for_ranks(where, options, notes);
    int const gpus = options.gpus;
    if (where.node.gpus == 0)
        throw_error(errc::usage,
                    "--gpus {0}: a node of {1} has no GPU (gpus = 0 in {2}); give --ranks {0} for ranks without GPUs", gpus,
                    where.name, where.file);
    if (where.node.gpus && options.gpus_per_node && *options.gpus_per_node > *where.node.gpus)
        throw_error(errc::usage, "--gpus-per-node {}: a node of {} has {}; give at most that", *options.gpus_per_node, where.name,
                    counted(*where.node.gpus, "GPU"));
    auto const per_node = options.gpus_per_node    ? options.gpus_per_node
                          : options.ranks_per_node ? options.ranks_per_node
                                                   : where.node.gpus;
    if (!per_node && where.node.cores && gpus > *where.node.cores)
        throw_error(errc::usage,
                    "{} has no number of GPUs in a node, and {} cores: {} ranks do not fit; give --ranks {} for ranks without "
                    "GPUs, or --gpus-per-node N",
                    where.name, *where.node.cores, gpus, gpus);
    if (!per_node || where.scheduler == script_kind::local) {
        if (where.scheduler != script_kind::local && gpus > 1)
            notes.push_back(
                fmt::format("{} has no number of GPUs in a node, so one node is asked for all {}; give "
                            "--gpus-per-node to divide them, or --ranks for ranks without GPUs",
                            where.name, gpus));
        return {1, gpus};
    }
    if (gpus <= *per_node) return {1, gpus};
    if (gpus % *per_node == 0) return {gpus / *per_node, *per_node};
    std::vector<std::string> ways;
    for (int const nodes : {gpus / *per_node, gpus / *per_node + 1})
        ways.push_back(fmt::format("{} ({})", amount_text(options, nodes * *per_node), nodes_text(nodes)));
    for (int fewer = *per_node - 1; fewer > 1; --fewer)
        if (gpus % fewer == 0) {
            ways.push_back(fmt::format("--gpus-per-node {} ({} with {} each)", fewer, nodes_text(gpus / fewer), fewer));
            break;
        }
    throw_error(errc::usage, "{}; use {}", uneven_gpus(where, gpus, *per_node), join(ways, ", or "));
}

int cpus_per_rank(site const& where, script_options const& options, shape const& on, std::vector<std::string>& notes) {
    if (options.cpus_per_gpu) {
        auto const wanted = std::int64_t{*options.cpus_per_gpu} * on.per_node;
        if (where.node.cpus && wanted > *where.node.cpus)
            throw_error(
                errc::usage,
                "--cpus-per-gpu {}: {} ranks a node would need {} hardware threads, and a node of {} has {}; give at most {}",
                *options.cpus_per_gpu, on.per_node, wanted, where.name, *where.node.cpus,
                std::max(1, *where.node.cpus / on.per_node));
        return *options.cpus_per_gpu;
    }
    if (options.cpus_per_rank || options.ranks > 0) {
        int const threads = options.cpus_per_rank.value_or(1) * threads_per_core(where.node);
        if (where.node.cpus && std::int64_t{threads} * on.per_node > *where.node.cpus)
            throw_error(errc::usage,
                        "--cpus-per-rank {}: {} ranks a node would need {} hardware threads, and a node of {} has {}",
                        options.cpus_per_rank.value_or(1), on.per_node, threads * on.per_node, where.name, *where.node.cpus);
        return threads;
    }
    if (where.header.cpus_per_gpu) return *where.header.cpus_per_gpu;
    if (where.node.cpus && on.per_node > *where.node.cpus)
        throw_error(errc::usage, "{} ranks on a node of {}, which has {} hardware threads; give at most that many a node",
                    on.per_node, where.name, *where.node.cpus);
    if (auto const cpus = where.node.cpus ? where.node.cpus : where.node.cores)
        return std::max(1, *cpus / where.node.gpus.value_or(on.per_node));
    if (where.scheduler == script_kind::slurm ||
        ((where.scheduler == script_kind::pbs || where.scheduler == script_kind::flux) && !where.header.whole_nodes))
        notes.push_back(
            fmt::format("{} has no number of cores in a node, so one is asked for each rank; give "
                        "--cpus-per-gpu or --cpus-per-rank for more",
                        where.name));
    return where.scheduler == script_kind::pbs ? 1 : 0;
}

/// Returns whether one node has room for this many ranks, as far as its site and the user say.
bool has_room(site_node const& node, script_options const& options, std::int64_t ranks) {
    auto const within = [ranks](std::optional<int> const& most, int each = 1) { return !most || ranks * each <= *most; };
    int const width = options.cpus_per_rank.value_or(1);
    return within(options.ranks_per_node) && within(node.cores ? node.cores : node.cpus, width) &&
           within(node.cpus, options.cpus_per_gpu.value_or(width * threads_per_core(node))) &&
           (options.ranks > 0 || (within(node.gpus) && within(options.gpus_per_node)));
}

/// Adds to the job what --spares N keeps idle: the last N nodes or, on one node with enough room, N more places.
void plan_spares(site const& where, site_node const& node, script_request& request, script_options const& options,
                 std::vector<std::string>& notes) {
    if (options.spares == 0 || where.scheduler == script_kind::local) return;
    bool const fits = has_room(node, options, std::int64_t{request.ranks_per_node} + options.spares);
    (request.nodes == 1 && fits ? request.spare_places : request.spare_nodes) = options.spares;
    notes.push_back(request.spare_nodes > 0
                        ? fmt::format("--spares {}: the job asks for {} more, which {} idle until a node is lost", options.spares,
                                      nodes_text(options.spares), options.spares == 1 ? "is" : "are")
                        : fmt::format("--spares {}: the job asks for room for {} ranks on its node", options.spares,
                                      request.ranks_per_node + options.spares));
}

/// Slurm and PBS end a job that loses a node (PBS minutes later), unless it asks them not to.
void plan_lost_nodes(script_request& request, script_options const& options) {
    if (!options.outlives_nodes || request.nodes + request.spare_nodes == 1) return;
    auto const add = [&](std::string const& directive, auto const& says_it) {
        if (std::ranges::none_of(request.directives, says_it)) request.directives.push_back(directive);
    };
    if (request.kind == script_kind::slurm)
        add("--no-kill", [](auto const& line) { return line.starts_with("--no-kill") || line.starts_with("-k"); });
    else if (request.kind == script_kind::pbs)
        add("-W tolerate_node_failures=all",
            [](auto const& line) { return line.find("tolerate_node_failures") != std::string::npos; });
}

/// Counts ranks by cores and hides GPUs from them: the nodes may have GPUs that the job has not requested.
void plan_ranks_without_gpus(site const& where, site_node const& node, script_request& request, script_options const& options) {
    auto& words = request.run_options;
    if (options.cpus_per_rank) words.insert(words.end(), {"--cpus-per-rank", std::to_string(*options.cpus_per_rank)});
    if (options.ranks == 0) return;
    request.with_gpus = false;
    if (request.chunks > 0)
        throw_error(errc::usage, "queue '{}' of {} counts GPUs, and --ranks asks for none; take another queue", request.queue,
                    where.name);
    bool const has_gpus = node.gpus.value_or(0) > 0;
    if (!has_gpus && where.node.gpus.value_or(0) == 0) return;
    words.insert(words.end(), {"--slots-per-node", std::to_string(request.ranks_per_node + request.spare_places)});
    if (!has_gpus) return;
    for (auto const* name : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"})
        request.environment.insert(request.environment.begin(), {name, "-1"});
}

/// Returns two minutes, or a quarter of a short job.
std::string default_signal(duration walltime) {
    return fmt::format("USR1@{}", static_cast<int>(std::clamp(walltime.count() / 4, 1.0, 120.0)));
}

/// Returns Slurm's form "USR1@120" of "USR1@2min".
std::string signal_of_slurm(std::string const& signal) {
    auto const at = signal.find('@');
    auto const seconds = parse_duration(signal.substr(at + 1), "--signal-before-end").count();
    return fmt::format("{}@{}", signal.substr(0, at), static_cast<std::int64_t>(std::max(1.0, std::ceil(seconds))));
}

/// Returns whether the program gets a signal before the job ends.
bool wants_signal(script_options const& options) {
    return !options.early_signal.empty() || options.chain > 0 || options.requeue || !options.artifacts.empty();
}

void plan_sequence(script_request& request, script_options const& options) {
    if (!options.array.empty() && !options.sweep.empty())
        throw error(errc::usage, "--array and --sweep both make an array; give one of them");
    if (options.chain > 0 && !(options.array.empty() && options.sweep.empty() && options.each.empty()))
        throw error(errc::usage, "--chain and an array do not go together; leave out one of them");
    if (options.sweep.size() == 1)
        throw error(errc::usage, "--sweep needs two numbers of ranks or more; for one give --gpus or --ranks");
    request.array = options.array;
    request.sweep = options.sweep;
    request.after = options.after;
    request.after_kind = options.after_kind;
    request.chain = options.chain;
    request.requeue = options.requeue;
    plan_each(request, options);
}

/// Slurm learns of a preemption before muster does, so it sends the signal to the script of a job that it may start again.
void plan_signal(script_request& request, script_options const& options) {
    bool const scheduled = request.kind != script_kind::local;
    if (!wants_signal(options) || (!scheduled && options.early_signal.empty())) return;
    auto const signal = options.early_signal.empty() ? default_signal(request.walltime) : options.early_signal;
    if (options.requeue && request.kind == script_kind::slurm)
        request.signal = signal_of_slurm(signal);
    else
        request.run_options.insert(request.run_options.end(), {"--signal-before-end", signal});
}

/// Passes on what the run needs to judge whether another job is worthwhile.
void plan_progress(script_request& request, script_options const& options) {
    auto& words = request.run_options;
    if (options.saved_code) words.insert(words.end(), {"--saved-code", std::to_string(*options.saved_code)});
    if (!options.must_grow.empty()) words.insert(words.end(), {"--must-grow", options.must_grow});
}

/// Returns "64G" for "64GB": a GB has 2^30 bytes for sbatch and qsub, but 10^9 for parse_bytes.
std::string_view as_schedulers_take_it(std::string_view memory) {
    memory = trim(memory);
    bool const has_letter =
        memory.size() > 1 && std::string_view("kKmMgGtT").find(memory[memory.size() - 2]) != std::string_view::npos;
    return has_letter && (memory.back() == 'B' || memory.back() == 'b') ? memory.substr(0, memory.size() - 1) : memory;
}

/// Refuses a bare number, for which each scheduler has another unit.
void plan_memory(site const& where, script_request& request, script_options const& options) {
    if (options.memory.empty()) return;
    bool const slurm = request.kind == script_kind::slurm;
    if (!slurm && request.kind != script_kind::pbs)
        throw_error(errc::usage, "--mem is for Slurm and PBS, and {} has {}; leave it out", where.name, to_string(request.kind));
    if (options.memory == "all") {
        if (!slurm)
            throw_error(errc::usage, "--mem all is for Slurm, and {} has PBS; give a size, such as --mem 64G", where.name);
        request.directives.emplace_back("--mem=0");
        return;
    }
    if (parse_real(trim(options.memory)))
        throw_error(errc::usage, "--mem: '{0}' has no unit; write {0}M or {0}G", options.memory);
    std::uint64_t bytes = 0;
    try {
        bytes = parse_bytes(as_schedulers_take_it(options.memory), "--mem");
    } catch (parse_error const& e) {
        throw error(errc::usage, e.what());
    }
    auto const mib = (bytes + (1 << 20) - 1) >> 20;
    if (slurm) {
        request.directives.push_back(fmt::format("--mem={}M", mib));
        return;
    }
    auto const chunks_a_node = request.chunks > 0 ? request.chunks / (request.nodes + request.spare_nodes) : 1;
    request.chunk +=
        fmt::format("{}mem={}mb", request.chunk.empty() ? "" : ":",
                    (mib + static_cast<std::uint64_t>(chunks_a_node) - 1) / static_cast<std::uint64_t>(chunks_a_node));
}

/// Takes directives for the site's scheduler and drops those for another one, so that one job file serves several sites.
void plan_directives(site const& where, script_request& request, script_options const& options, std::vector<std::string>& notes) {
    auto const take = [&](std::vector<std::string> const& lines, script_kind kind, std::string_view name,
                          std::string_view prefix) {
        if (lines.empty()) return;
        if (request.kind != kind) {
            notes.push_back(fmt::format("{} has {}: --{} is left out", where.name, to_string(request.kind), name));
            return;
        }
        for (std::string_view line : lines) {
            line = trim(line);
            if (line.starts_with(prefix)) line = trim(line.substr(prefix.size()));
            if (auto const fault = find_fault(line, directive_text::directive))
                throw_error(errc::usage, "--{} '{}', character {}: {}", name, line, fault->offset + 1, fault->why);
            request.directives.emplace_back(line);
        }
    };
    take(options.sbatch, script_kind::slurm, "sbatch", "#SBATCH");
    take(options.qsub, script_kind::pbs, "qsub", "#PBS");
}

void plan_container(site const& where, script_request& request, script_options const& options) {
    if (options.container.empty()) {
        if (!options.container_runtime.empty() || options.container_args)
            throw error(errc::usage, "--container-runtime and --container-args need an image; give --container IMAGE");
        return;
    }
    auto const site_runtime = where.container_runtime.empty() ? "apptainer" : where.container_runtime;
    auto const runtime = options.container_runtime.empty() ? site_runtime : options.container_runtime;
    bool const site_args = runtime == site_runtime && where.container_args;
    auto args = options.container_args.value_or(site_args            ? *where.container_args
                                                : runtime == "pyxis" ? std::vector<std::string>{}
                                                                     : std::vector<std::string>{"--nv"});
    if (runtime != "pyxis") {
        request.container = {options.container, runtime, std::move(args)};
        return;
    }
    if (request.kind != script_kind::slurm)
        throw_error(errc::usage, "pyxis is a plugin of Slurm's srun, and {} has {}; give --container-runtime apptainer",
                    where.name, to_string(request.kind));
    args.insert(args.begin(), "--container-image=" + options.container);
    request.run_options.insert(request.run_options.end(), {"--engine", "srun", "--engine-args", shell_join(args)});
}

/// The script copies the last results: that takes longer than the five seconds that ranks have to end.
void plan_staging(site const& where, script_request& request, script_options const& options) {
    request.stage_in = options.stage_in;
    if (options.artifacts.empty()) return;
    request.artifacts.folder = options.artifacts;
    request.artifacts.every = fmt::format("{}s", static_cast<std::int64_t>(std::max(1.0, options.artifacts_every.count())));
    if (!where.node_local.empty()) request.artifacts.node_folder = where.node_local;
    request.run_options.insert(request.run_options.end(), {"--grace", "25s"});
}

/// Refuses what the script does for its ranks and cannot do for those of runs that it does not start.
void plan_once(script_request& request, script_options const& options) {
    if (!options.once) return;
    if (!options.container.empty() || !options.artifacts.empty() || options.chain > 0 || !options.sweep.empty())
        throw error(errc::usage,
                    "--once does not go with --container, --artifacts, --chain and --sweep, which are for ranks that the script "
                    "itself starts; give them to a job without --once");
    request.once = true;
    hand_to_runs(request, std::exchange(request.run_options, {}));
}

/// Returns the variable that tells muster run what the option at `words[at]` says; moves `at` behind it. A flag has no value.
std::pair<std::string, std::string> variable_at(std::vector<std::string> const& words, std::size_t& at) {
    auto name = words[at++].substr(2);
    bool const off = name.starts_with("no-") && find_setting(name, "run") == nullptr;
    if (off) name.erase(0, 3);
    auto const* row = find_setting(name, "run");
    expect(row != nullptr && row->is_configurable(), fmt::format("a variable that says --{}", name));
    if (row->kind == setting_kind::flag) return {variable_of(*row), off ? "false" : "true"};
    return {variable_of(*row), words.at(at++)};
}

}  // namespace

void hand_to_runs(script_request& request, std::vector<std::string> const& words) {
    if (!request.once) {
        request.run_options.insert(request.run_options.end(), words.begin(), words.end());
        return;
    }
    std::vector<std::pair<std::string, std::string>> variables;
    for (std::size_t at = 0; at < words.size();) variables.push_back(variable_at(words, at));
    request.environment.insert(request.environment.begin(), variables.begin(), variables.end());  // the user's values hold
}

std::optional<int> nodes_at(site const& where, script_options const& options) try {
    std::vector<std::string> notes;
    auto const on = shape_for(where, options, notes);
    script_request request;
    request.nodes = on.nodes;
    request.ranks_per_node = on.per_node;
    plan_spares(where, where.node, request, options, notes);
    cpus_per_rank(where, options, {on.nodes, on.per_node + request.spare_places}, notes);
    return request.nodes + request.spare_nodes;
} catch (error const&) {
    return std::nullopt;
}

script_plan plan_script(site const& where, script_options const& asked) try {
    auto const queue = asked.queue.empty() ? where.header.default_queue : asked.queue;
    auto const there = with_nodes_of_queue(where, queue);
    auto const options = options_at(there, with_sweep_counted(there, asked));
    script_plan plan;
    auto& request = plan.request;
    bool const scheduled = where.scheduler != script_kind::local;
    if (scheduled && !options.walltime)
        throw_error(errc::usage, "--time is missing; a job of {} needs one, such as --time 1:30:00", where.name);
    if (where.decommissioned)
        plan.notes.push_back(fmt::format("{} is decommissioned: the script shows how a job ran there", where.name));
    auto const on = shape_for(there, options, plan.notes);
    request.kind = where.scheduler;
    request.nodes = on.nodes;
    request.ranks_per_node = on.per_node;
    plan_spares(where, there.node, request, options, plan.notes);
    request.cpus_per_rank = cpus_per_rank(there, options, {on.nodes, on.per_node + request.spare_places}, plan.notes);
    request.walltime = options.walltime.value_or(duration(0));
    request.job_name = options.job_name;
    request.account = options.account;
    request.queue = queue;
    if (scheduled) plan_queue(where, request, options, plan.notes);
    if (where.header.account_required && options.account.empty())
        throw_error(errc::usage, "{} needs an account; give --account{}", where.name,
                    where.header.account_hint.empty() ? "" : fmt::format(" ({})", where.header.account_hint));
    if (!scheduled && (!options.account.empty() || !options.queue.empty()))
        plan.notes.push_back(fmt::format("{} has no scheduler: --account and --queue are left out", where.name));
    if (options.cpus_per_gpu && where.scheduler != script_kind::slurm &&
        (where.header.whole_nodes || (where.scheduler != script_kind::pbs && where.scheduler != script_kind::flux)))
        throw_error(errc::usage, "--cpus-per-gpu has no meaning at {}, whose nodes are given whole; leave it out", where.name);
    if (!options.constraint.empty() && where.scheduler != script_kind::slurm && where.scheduler != script_kind::flux)
        throw_error(errc::usage, "--constraint is for Slurm and Flux, and {} has {}", where.name, to_string(where.scheduler));
    if (!options.filesystems.empty() && where.scheduler != script_kind::pbs)
        throw_error(errc::usage, "--filesystems is for PBS, and {} has {}", where.name, to_string(where.scheduler));
    request.queue_is_qos = where.header.queue_is_qos;
    request.constraint = options.constraint.empty() ? where.header.constraint : options.constraint;
    request.gpus_by = where.header.gpus_by;
    request.chunk = where.header.chunk;
    request.whole_nodes = where.header.whole_nodes;
    request.place = where.header.place;
    request.filesystems = options.filesystems.empty() ? where.header.filesystems : options.filesystems;
    request.attributes = where.header.attributes;
    request.directives = where.header.directives;
    plan_memory(where, request, options);
    plan_directives(where, request, options, plan.notes);
    plan_lost_nodes(request, options);
    request.login_shell = where.header.login_shell;
    bool const multi = request.nodes + request.spare_nodes > 1 && options.network_environment;
    auto const append = [](auto& to, auto const& more) { to.insert(to.end(), more.begin(), more.end()); };
    request.modules = where.modules;
    if (multi) append(request.modules, where.modules_multi_node);
    append(request.modules, options.modules);
    request.setup = where.setup;
    if (multi) append(request.setup, where.setup_multi_node);
    append(request.setup, options.setup);
    request.venv = options.venv;
    request.conda = options.conda;
    request.environment = where.environment;
    if (multi) append(request.environment, where.environment_multi_node);
    append(request.environment, options.environment);  // last, so the user's values override others
    // The site's settings and core maps apply in the job, too.
    if (!options.site.empty()) request.run_options = {"--site", options.site};
    request.node_run_options = request.run_options;
    plan_ranks_without_gpus(where, there.node, request, options);
    plan_sequence(request, options);
    plan_container(where, request, options);
    plan_signal(request, options);
    plan_progress(request, options);
    plan_staging(where, request, options);
    if (!scheduled && options.walltime)
        request.run_options.insert(request.run_options.end(), {"--timeout", format_walltime(*options.walltime)});
    hand_to_runs(request, options.run_words);
    plan_once(request, options);
    request.muster = options.muster;
    request.command = options.command;
    check_each_words(request, options);
    return plan;
} catch (error const& e) {
    throw_at_place(e, asked.places);
}

}  // namespace muster
