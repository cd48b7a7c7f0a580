#include "launch/site/script_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

std::string nodes_text(int nodes) {
    return fmt::format("{} {}", nodes, nodes == 1 ? "node" : "nodes");
}

/// The reason why the job does not fit; nothing if it does.
std::optional<std::string> misfit(queue_limits const& limits, int nodes, duration walltime) {
    if (nodes < limits.min_nodes) return fmt::format("takes no fewer than {}", nodes_text(limits.min_nodes));
    if (limits.max_nodes && nodes > *limits.max_nodes) return fmt::format("takes at most {}", nodes_text(*limits.max_nodes));
    if (limits.min_walltime && walltime < *limits.min_walltime)
        return fmt::format("takes no less than {}", format_walltime(*limits.min_walltime));
    if (limits.max_walltime && walltime > *limits.max_walltime)
        return fmt::format("takes at most {}", format_walltime(*limits.max_walltime));
    return std::nullopt;
}

std::optional<std::string> misfit(site_queue const& queue, int nodes, duration walltime) {
    if (auto why = misfit(queue.limits, nodes, walltime)) return why;
    if (queue.routes.empty()) return std::nullopt;
    for (auto const& route : queue.routes) {
        bool const is_its_size = nodes >= route.limits.min_nodes && (!route.limits.max_nodes || nodes <= *route.limits.max_nodes);
        if (!is_its_size) continue;
        auto const why = misfit(route.limits, nodes, walltime);
        if (!why) return std::nullopt;
        return fmt::format("sends {} to '{}', which {}", nodes_text(nodes), route.name, *why);
    }
    return fmt::format("has no queue behind it for {}", nodes_text(nodes));
}

std::string fitting_queues(site const& where, int nodes, duration walltime) {
    std::vector<std::string> names;
    for (auto const& queue : where.queues)
        if (!misfit(queue, nodes, walltime))
            names.push_back(queue.note.empty() ? queue.name : fmt::format("{} ({})", queue.name, queue.note));
    return names.empty() ? "no queue of the site" : join(names, ", ");
}

void check_queue(site const& where, std::string const& queue, int nodes, duration walltime, bool check_limits) {
    auto const job = fmt::format("{} for {}", nodes_text(nodes), format_walltime(walltime));
    auto const fit = [&] { return fitting_queues(where, nodes, walltime); };
    if (queue.empty()) {
        if (where.header.queue_required)
            throw error(errc::usage, fmt::format("{} needs a queue; give --queue: {} {}", where.name, job,
                                                 where.queues.empty() ? "" : fmt::format("would fit {}", fit())));
        return;
    }
    if (!check_limits || where.queues.empty()) return;
    auto const found = std::find_if(where.queues.begin(), where.queues.end(), [&](auto const& q) { return q.name == queue; });
    if (found == where.queues.end()) {
        std::vector<std::string> names;
        for (auto const& known : where.queues) names.push_back(known.name);
        auto const near = nearest(queue, names);
        throw error(
            errc::usage,
            fmt::format("{} has no queue '{}'{}; {} would fit {}; --no-limits takes a queue that the site file does not know",
                        where.name, queue, near ? fmt::format(", did you mean '{}'?", *near) : "", job, fit()));
    }
    if (auto const why = misfit(*found, nodes, walltime))
        throw error(errc::usage, fmt::format("{} does not fit queue '{}' of {}, which {}; it would fit: {}", job, queue,
                                             where.name, *why, fit()));
}

/// Nodes and ranks a node for `gpus`.
struct shape {
    int nodes;
    int per_node;
};

shape shape_for(site const& where, script_options const& options, std::vector<std::string>& notes) {
    int const gpus = options.gpus;
    if (where.node.gpus && options.gpus_per_node && *options.gpus_per_node > *where.node.gpus)
        throw error(errc::usage, fmt::format("--gpus-per-node {}: a node of {} has {} GPUs; give at most that",
                                             *options.gpus_per_node, where.name, *where.node.gpus));
    auto const per_node = options.gpus_per_node ? options.gpus_per_node : where.node.gpus;
    if (!per_node || where.scheduler == script_kind::local) {
        if (where.scheduler != script_kind::local)
            notes.push_back(
                fmt::format("the site file of {} has no number of GPUs in a node, so one node is asked for all {}; give "
                            "--gpus-per-node to divide them",
                            where.name, gpus));
        return {1, gpus};
    }
    if (gpus <= *per_node) return {1, gpus};
    if (gpus % *per_node == 0) return {gpus / *per_node, *per_node};

    std::vector<std::string> ways;
    ways.push_back(fmt::format("--gpus {} ({})", gpus / *per_node * *per_node, nodes_text(gpus / *per_node)));
    ways.push_back(fmt::format("--gpus {} ({})", (gpus / *per_node + 1) * *per_node, nodes_text(gpus / *per_node + 1)));
    for (int fewer = *per_node - 1; fewer > 1; --fewer)
        if (gpus % fewer == 0) {
            ways.push_back(fmt::format("--gpus-per-node {} ({} with {} each)", fewer, nodes_text(gpus / fewer), fewer));
            break;
        }
    throw error(errc::usage,
                fmt::format("{} GPUs do not fill whole nodes of {} ({} GPUs each), and ranks would be divided unevenly; use {}",
                            gpus, where.name, *per_node, join(ways, ", or ")));
}

int cpus_per_rank(site const& where, script_options const& options, shape const& on, std::vector<std::string>& notes) {
    if (options.cpus_per_gpu) {
        auto const wanted = std::int64_t{*options.cpus_per_gpu} * on.per_node;
        if (where.node.cpus && wanted > *where.node.cpus)
            throw error(
                errc::usage,
                fmt::format(
                    "--cpus-per-gpu {}: {} ranks a node would need {} hardware threads, and a node of {} has {}; give at most {}",
                    *options.cpus_per_gpu, on.per_node, wanted, where.name, *where.node.cpus,
                    std::max(1, *where.node.cpus / on.per_node)));
        return *options.cpus_per_gpu;
    }
    if (where.node.cpus) return std::max(1, *where.node.cpus / where.node.gpus.value_or(on.per_node));
    if (where.scheduler == script_kind::slurm || where.scheduler == script_kind::pbs)
        notes.push_back(fmt::format(
            "the site file of {} has no number of cores in a node, so one is asked for each rank; give --cpus-per-gpu for more",
            where.name));
    return where.scheduler == script_kind::pbs ? 1 : 0;
}

}  // namespace

script_plan plan_script(site const& where, script_options const& options) {
    script_plan plan;
    auto& request = plan.request;
    bool const scheduled = where.scheduler != script_kind::local;
    if (scheduled && !options.walltime)
        throw error(errc::usage, fmt::format("--time is missing; a job of {} needs one, such as --time 1:30:00", where.name));
    auto const on = shape_for(where, options, plan.notes);
    request.kind = where.scheduler;
    request.nodes = on.nodes;
    request.ranks_per_node = on.per_node;
    request.cpus_per_rank = cpus_per_rank(where, options, on, plan.notes);
    request.walltime = options.walltime.value_or(duration(0));
    request.job_name = options.job_name;
    request.account = options.account;
    request.queue = options.queue.empty() ? where.header.default_queue : options.queue;
    if (scheduled) check_queue(where, request.queue, on.nodes, request.walltime, options.check_limits);
    if (where.header.account_required && options.account.empty())
        throw error(errc::usage,
                    fmt::format("{} needs an account; give --account{}", where.name,
                                where.header.account_hint.empty() ? "" : fmt::format(" ({})", where.header.account_hint)));
    if (!scheduled && (!options.account.empty() || !options.queue.empty()))
        plan.notes.push_back(fmt::format("{} has no scheduler: --account and --queue are left out", where.name));
    if (options.cpus_per_gpu && where.scheduler != script_kind::slurm &&
        (where.header.whole_nodes || where.scheduler != script_kind::pbs))
        throw error(errc::usage,
                    fmt::format("--cpus-per-gpu has no meaning at {}, whose nodes are given whole; leave it out", where.name));
    if (!options.constraint.empty() && where.scheduler != script_kind::slurm)
        throw error(errc::usage, fmt::format("--constraint is for Slurm, and {} has {}", where.name, to_string(where.scheduler)));
    if (!options.filesystems.empty() && where.scheduler != script_kind::pbs)
        throw error(errc::usage, fmt::format("--filesystems is for PBS, and {} has {}", where.name, to_string(where.scheduler)));
    request.queue_is_qos = where.header.queue_is_qos;
    request.constraint = options.constraint.empty() ? where.header.constraint : options.constraint;
    request.gpus_by = where.header.gpus_by;
    request.chunk = where.header.chunk;
    request.whole_nodes = where.header.whole_nodes;
    request.place = where.header.place;
    request.filesystems = options.filesystems.empty() ? where.header.filesystems : options.filesystems;
    request.attributes = where.header.attributes;
    request.directives = where.header.directives;
    request.login_shell = where.header.login_shell;
    request.modules = where.modules;
    request.setup = where.setup;
    request.environment = where.environment;
    if (on.nodes > 1 && options.network_environment)
        request.environment.insert(request.environment.end(), where.environment_multi_node.begin(),
                                   where.environment_multi_node.end());
    // The site's settings and core maps hold in the job too.
    if (!options.site.empty()) request.run_options = {"--site", options.site};
    if (!scheduled && options.walltime)
        request.run_options.insert(request.run_options.end(), {"--timeout", format_walltime(*options.walltime)});
    request.muster = options.muster;
    request.command = options.command;
    return plan;
}

}  // namespace muster
