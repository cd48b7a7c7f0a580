#include "launch/samples/remarks/run_remarks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/units.hpp"
#include "launch/samples/remarks/oddities.hpp"

namespace muster {

namespace {

constexpr double short_run_s = 30;          ///< before that ranks load their libraries and data, and wait for each other there
constexpr double slowed_share = 0.2;        ///< of the looks at a busy GPU: a warm minute in an hour is usual
constexpr double use_after_s = 300;         ///< a shorter run is a trial, whose GPUs and memory need not be well used
constexpr double busy_percent = 50;         ///< of all GPUs: training that computes has 80 and more
constexpr double worth_data_wait = 0.2;     ///< a loader that keeps up is waited for some percent of the time
constexpr double used_memory_share = 0.25;  ///< of what the job may use: others could have the rest
constexpr double whole_memory = 0.9;        ///< of the node's: the job has the node for itself
constexpr double least_memory = 16e9;       ///< bytes a node: less is hardly worth a word

/// A node with one of these is the cause of a wait, and not the program.
constexpr std::array blames_node{oddity_kind::gpu_slowed, oddity_kind::gpu_errors, oddity_kind::steal};
/// These count over a whole run; the others are of a moment.
constexpr std::array counts_for_run{oddity_kind::awaited,      oddity_kind::gpu_slowed, oddity_kind::gpu_errors,
                                    oddity_kind::throttled,    oddity_kind::steal,      oddity_kind::swapping,
                                    oddity_kind::shares_cores, oddity_kind::data_wait};

double share(double of, double all) {
    return all > 0 ? std::clamp(of / all, 0.0, 1.0) : 0;
}

/// Returns samples whose figures of a moment are those of the whole run.
run_samples whole_run(run_samples all) {
    for (auto& node : all.nodes) {
        double age_s = 0;
        for (auto& rank : node.ranks) {
            age_s = std::max(age_s, rank.age_s);
            rank.state = '?';
            rank.silent_s = std::nullopt;
            rank.faults_per_s = std::nullopt;
            if (rank.major_faults && rank.age_s > use_after_s)
                rank.faults_per_s = static_cast<double>(*rank.major_faults) / rank.age_s;
            auto const throttled = rank.cgroup.throttled_of_run;
            rank.cgroup = {};
            rank.cgroup.throttled = throttled;
            if (rank.data_wait_s) rank.data_wait = share(*rank.data_wait_s, rank.age_s);
            if (rank.core_wait_s) rank.core_wait = share(*rank.core_wait_s, rank.age_s);
            if (rank.waits) rank.waits->waiting = share(rank.waits->waited_s, rank.age_s);
        }
        if (node.steal_s && node.cpus) node.steal = share(*node.steal_s, age_s * *node.cpus);
        for (auto& gpu : node.gpus) {
            gpu.busy_percent = gpu.mean_busy_percent;
            gpu.clock_mhz = gpu.mean_clock_mhz;
            gpu.slowed = gpu.slowed_share.value_or(0) > slowed_share ? gpu.was_slowed : std::string();
        }
    }
    return all;
}

double age_of(run_samples const& all) {
    double age_s = 0;
    for (auto const& node : all.nodes)
        for (auto const& rank : node.ranks) age_s = std::max(age_s, rank.age_s);
    return age_s;
}

/// Returns the mean share of the time for which the ranks with loaders waited for data.
double data_wait_of(run_samples const& all) {
    double sum = 0;
    int known = 0;
    for (auto const& node : all.nodes)
        for (auto const& rank : node.ranks)
            if (rank.data_wait_s) sum += share(*rank.data_wait_s, rank.age_s), ++known;
    return known > 0 ? sum / known : 0;
}

/// Looks at the ranks' GPUs and their data.
void add_use(std::vector<run_remark>& to, run_samples const& all) {
    double sum = 0;
    int known = 0;
    double const for_data = data_wait_of(all);
    auto const data = fmt::format("waited {:.0f} % of the time for data", 100 * for_data);
    bool const waited = for_data >= worth_data_wait;
    for (auto const& node : all.nodes)
        for (auto const& rank : node.ranks)
            if (auto const* const gpu = gpu_of(node, rank); gpu != nullptr && gpu->mean_busy_percent)
                sum += *gpu->mean_busy_percent, ++known;
    if (known > 0 && sum / known < busy_percent)
        to.push_back({fmt::format("the GPUs of the ranks were busy {:.0f} % of the time; {}", sum / known,
                                  waited ? "the ranks " + data : "muster-bench scale shows what limits the steps"),
                      "", ""});
    else if (waited)
        to.push_back({fmt::format("the ranks {}: give the loader more workers, or stage the data nearer", data), "", ""});
}

/// Looks at the node whose ranks used most. A job that has the whole of a node's memory cannot ask for less of it.
void add_memory_use(std::vector<run_remark>& to, run_samples const& all) {
    double most = 0, limit = 0;
    for (auto const& node : all.nodes) {
        double used = 0;
        for (auto const& rank : node.ranks) {
            used += static_cast<double>(rank.most_memory_bytes.value_or(0));
            auto const may = static_cast<double>(rank.cgroup.memory_limit_bytes.value_or(0));
            if (node.memory_bytes && may < whole_memory * static_cast<double>(*node.memory_bytes)) limit = std::max(limit, may);
        }
        most = std::max(most, used);
    }
    if (limit < least_memory || most <= 0 || most >= used_memory_share * limit) return;
    auto const bytes = [](double of) { return format_bytes(static_cast<std::uint64_t>(of)); };
    to.push_back({fmt::format("the job may use {} of memory on each node; its ranks used at most {}: ask for less (--mem)",
                              bytes(limit), bytes(most)),
                  "", ""});
}

}  // namespace

std::vector<run_remark> remarks_on(run_samples const& last) {
    std::vector<run_remark> remarks;
    auto const age_s = age_of(last);
    if (age_s < short_run_s) return remarks;
    auto found = find_oddities(whole_run(last), tense::past);
    auto const of = [](auto const& kinds, oddity const& one) { return std::ranges::find(kinds, one.kind) != kinds.end(); };
    std::erase_if(found, [&](oddity const& one) { return !of(counts_for_run, one); });
    std::ranges::stable_sort(found, {}, [](oddity const& one) { return one.kind != oddity_kind::awaited; });
    for (auto const& one : found) {
        // The remark on a wait names its cause already.
        auto const is_cause = [&](oddity const& other) {
            return other.kind == oddity_kind::awaited && other.rank == one.rank && one.kind != oddity_kind::awaited;
        };
        if (one.rank >= 0 && std::ranges::any_of(found, is_cause)) continue;
        auto const by_node = [&](oddity const& other) { return other.host == one.host && of(blames_node, other); };
        run_remark next;
        next.text = one.rank < 0 ? fmt::format("{}: {}", one.host, one.reason)
                                 : fmt::format("rank {} on {}{} {}", one.rank, one.host,
                                               one.kind == oddity_kind::awaited ? "" : ":", one.reason);
        if (std::ranges::any_of(found, by_node)) {
            next.host = one.host;
            next.of_host = one.rank < 0                       ? "had a busy hypervisor: " + one.reason
                           : one.kind == oddity_kind::awaited ? fmt::format("had rank {}, which {}", one.rank, one.reason)
                                                              : fmt::format("had rank {}: {}", one.rank, one.reason);
        }
        remarks.push_back(std::move(next));
    }
    if (age_s >= use_after_s) {
        add_use(remarks, last);
        add_memory_use(remarks, last);
    }
    return remarks;
}

}  // namespace muster
