// Checks whether a job is within the limits of its queue, and finds the queues that it would fit.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/scripts/script_plan.hpp"

namespace muster {

std::string nodes_text(int nodes) {
    return counted(nodes, "node");
}

namespace {

/// Returns the reason why the job does not fit; nothing if it does.
std::optional<std::string> misfit(queue_limits const& limits, int nodes, duration walltime) {
    if (nodes < limits.min_nodes) return fmt::format("takes no fewer than {}", nodes_text(limits.min_nodes));
    if (limits.max_nodes && nodes > *limits.max_nodes) return fmt::format("takes at most {}", nodes_text(*limits.max_nodes));
    if (limits.min_walltime && walltime < *limits.min_walltime)
        return fmt::format("takes no less than {}", format_walltime(*limits.min_walltime));
    if (limits.max_walltime && walltime > *limits.max_walltime)
        return fmt::format("takes at most {}", format_walltime(*limits.max_walltime));
    return std::nullopt;
}

/// Holds the properties of a job that affect the choice of its queue.
struct queued_size {
    int nodes = 1;
    duration walltime{0};
    bool gpus = true;
    std::string account;  ///< "": the user's default
};

std::optional<std::string> misfit(site_queue const& queue, queued_size const& job) {
    auto const& [nodes, walltime, gpus, account] = job;
    if (!account.empty() && !queue.accounts.empty() && std::ranges::find(queue.accounts, account) == queue.accounts.end())
        return fmt::format("takes jobs of the account{} {} alone", queue.accounts.size() == 1 ? "" : "s",
                           join(queue.accounts, ", "));
    if (gpus && queue.gpus == 0) return "has no GPUs";
    if (gpus && queue.max_gpu_nodes && nodes > *queue.max_gpu_nodes)
        return fmt::format("has {} with GPUs", nodes_text(*queue.max_gpu_nodes));
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

/// Returns "preemptable (may be killed at any time)".
std::string described(site_queue const& queue) {
    std::vector<std::string> words;
    if (!queue.note.empty()) words.push_back(queue.note);
    if (!queue.accounts.empty())
        words.push_back(fmt::format("account{} {}", queue.accounts.size() == 1 ? "" : "s", join(queue.accounts, ", ")));
    return words.empty() ? queue.name : fmt::format("{} ({})", queue.name, join(words, "; "));
}

/// Returns "2 nodes for 01:00:00 would fit: debug-scaling, preemptable (may be killed at any time)": the queues whose known
/// limits allow the job, and those with unknown limits.
std::string fitting_queues(std::string_view job, site const& where, queued_size size, script_options const& options) {
    std::vector<std::string> names, unknown;
    for (auto const& queue : where.queues) {
        auto const nodes = nodes_at(with_nodes_of_queue(where, queue.name), options);
        size.nodes = nodes.value_or(0);
        if (!nodes || misfit(queue, size)) continue;
        if (queue.limits.are_known())
            names.push_back(described(queue));
        else
            unknown.push_back(queue.name);
    }
    if (names.empty() && unknown.empty()) return fmt::format("{} would fit no queue of the site", job);
    auto const rest = fmt::format("limits of {} are not known here", join(unknown, ", "));
    if (names.empty()) return rest + ": the scheduler decides";
    auto const fitting = fmt::format("{} would fit: {}", job, join(names, ", "));
    return unknown.empty() ? fitting : fmt::format("{}; {}", fitting, rest);
}

/// Returns "limits of queue debug are not known here", or which limit is not.
std::optional<std::string> unknown_limits(site_queue const& queue) {
    auto const& limits = queue.limits;
    if (limits.are_known()) return std::nullopt;
    if (limits.max_nodes) return fmt::format("the longest walltime of queue {} is not known here", queue.name);
    if (limits.max_walltime) return fmt::format("the most nodes of queue {} are not known here", queue.name);
    return fmt::format("limits of queue {} are not known here", queue.name);
}

[[noreturn]] void throw_queue_missing(site const& where, queued_size const& size, script_options const& options) {
    auto const job = fmt::format("{} for {}", nodes_text(size.nodes), format_walltime(size.walltime));
    if (where.queues.empty())
        throw_error(errc::usage, "{} needs a queue, and its queues are not known here; give --queue", where.name);
    throw_error(errc::usage, "{} needs a queue; give --queue: {}", where.name, fitting_queues(job, where, size, options));
}

site_queue const* find_queue(site const& where, std::string const& name) {
    auto const found = std::ranges::find_if(where.queues, [&](auto const& q) { return q.name == name; });
    return found == where.queues.end() ? nullptr : &*found;
}

void check_queue(site const& where, std::string const& queue, queued_size const& size, script_options const& options,
                 std::vector<std::string>& notes) {
    if (where.queues.empty()) {
        notes.push_back(fmt::format("limits of queue {} are not known here: {} names no queues", queue, where.name));
        return;
    }
    auto const job = fmt::format("{} for {}", nodes_text(size.nodes), format_walltime(size.walltime));
    auto const* found = find_queue(where, queue);
    if (found == nullptr) {
        std::vector<std::string> names;
        for (auto const& known : where.queues) names.push_back(known.name);
        auto const near = nearest(queue, names);
        throw_error(errc::usage, "{} has no queue '{}'{}; {}; --no-limits takes a queue that the site file does not know",
                    where.name, queue, near ? fmt::format(", did you mean '{}'?", *near) : "",
                    fitting_queues(job, where, size, options));
    }
    if (auto const why = misfit(*found, size))
        throw_error(errc::usage, "{} does not fit queue '{}' of {}, which {}; {}", job, queue, where.name, *why,
                    fitting_queues("it", where, size, options));
    if (auto const unknown = unknown_limits(*found)) notes.push_back(fmt::format("{}: the scheduler decides", *unknown));
}

/// sbatch has one option for partitions and one for qualities of service; the site file says which of them --queue means.
void check_kind_of_queue(site const& where, script_options const& options) {
    if (where.scheduler != script_kind::slurm || find_queue(where, options.queue) != nullptr) return;
    bool const qos = options.queue_word == "--qos" || options.queue_word == "-q";
    bool const partition = options.queue_word == "--partition" || options.queue_word == "-p";
    if (where.header.queue_is_qos ? !partition : !qos) return;
    throw_error(errc::usage, "{} {}: at {} --queue is the {}; write --sbatch '--{}={}'", options.queue_word, options.queue,
                where.name, qos ? "partition" : "quality of service", qos ? "qos" : "partition", options.queue);
}

/// Checks the number for a queue that counts GPUs, all on one node.
void check_gpu_counts(site const& where, site_queue const& queue, int gpus, int spare) {
    auto const& most = queue.gpus ? queue.gpus : where.node.gpus;
    auto const parts = spare > 0 ? fmt::format(" ({} and {} for --spares)", gpus - spare, spare) : "";
    auto const& counts = queue.gpu_counts;
    if (!counts.empty() && std::ranges::find(counts, gpus) == counts.end())
        throw_error(errc::usage, "queue '{}' of {} takes {} GPUs, not {}{}; give --gpus{} one of these", queue.name, where.name,
                    fmt::join(counts, ", "), gpus, parts, spare > 0 ? " and --spares together" : "");
    if (queue.select_gpus && most && gpus > *most)
        throw_error(errc::usage, "queue '{}' of {} gives GPUs of one node, which has {}, not {}{}; take another queue",
                    queue.name, where.name, *most, gpus, parts);
}

}  // namespace

void plan_queue(site const& where, script_request& request, script_options const& options, std::vector<std::string>& notes) {
    check_kind_of_queue(where, options);
    queued_size const size{request.nodes + request.spare_nodes, request.walltime, options.ranks == 0, request.account};
    if (request.queue.empty()) {
        if (where.header.queue_required) throw_queue_missing(where, size, options);
        return;
    }
    if (options.check_limits) check_queue(where, request.queue, size, options, notes);
    auto const* queue = find_queue(where, request.queue);
    if (queue == nullptr) return;
    int const gpus = size.nodes * (request.ranks_per_node + request.spare_places);
    if (options.check_limits && size.gpus) check_gpu_counts(where, *queue, gpus, gpus - request.nodes * request.ranks_per_node);
    if (queue->select_gpus) request.chunks = gpus;  // one for each rank
}

}  // namespace muster
