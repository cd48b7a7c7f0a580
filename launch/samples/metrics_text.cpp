#include "launch/samples/metrics_text.hpp"

#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace muster {

namespace {

using figure = std::optional<double>;

template <typename Of>
struct metric {
    std::string_view name;  ///< that of a counter ends in _total; the others are gauges
    char const* help;
    figure (*read)(Of const&);
    double unit = 1;  ///< of what is read, in that of the metric
};

constexpr double megahertz = 1e6, percent = 0.01;

constexpr metric<run_samples> run_metrics[]{
    {"muster_run_ranks", "Ranks of the run.", [](auto& run) -> figure { return run.world_size; }},
    {"muster_run_start_time_seconds", "When the run began, in seconds since 1970.",
     [](auto& run) -> figure { return run.started_s; }},
};

constexpr metric<rank_sample> rank_metrics[]{
    {"muster_rank_user_seconds_total", "Processor time of the rank's processes in user mode.",
     [](auto& rank) -> figure { return rank.user_s; }},
    {"muster_rank_system_seconds_total", "Processor time of the rank's processes in the kernel.",
     [](auto& rank) -> figure { return rank.system_s; }},
    {"muster_rank_threads", "Threads of the rank's processes.", [](auto& rank) -> figure { return rank.threads; }},
    {"muster_rank_resident_memory_bytes", "Resident memory of the rank's processes.",
     [](auto& rank) -> figure { return rank.memory_bytes; }},
    {"muster_rank_major_page_faults_total", "Page faults that read from a disk or from swap.",
     [](auto& rank) -> figure { return rank.major_faults; }},
    {"muster_rank_read_bytes_total", "Bytes that the rank's processes read from storage.",
     [](auto& rank) -> figure { return rank.read_bytes; }},
    {"muster_rank_written_bytes_total", "Bytes that the rank's processes wrote to storage.",
     [](auto& rank) -> figure { return rank.written_bytes; }},
    {"muster_rank_throttled_seconds_total", "Time for which the quota of its cgroup held the rank back.",
     [](auto& rank) -> figure { return rank.cgroup.throttled_s; }},
    {"muster_rank_waiting_seconds_total", "Time for which the rank waited for others in collectives.",
     [](auto& rank) -> figure { return rank.waits ? figure(rank.waits->waited_s) : std::nullopt; }},
    {"muster_rank_data_waiting_seconds_total", "Time for which the rank waited for batches of muster's loaders.",
     [](auto& rank) -> figure { return rank.data_wait_s; }},
    {"muster_rank_core_waiting_seconds_total", "Time for which the rank's main thread wanted to run and had no core.",
     [](auto& rank) -> figure { return rank.core_wait_s; }},
    {"muster_rank_silent_seconds", "Time since the rank last wrote output.", [](auto& rank) -> figure { return rank.silent_s; }},
};

constexpr metric<gpu_sample> gpu_metrics[]{
    {"muster_gpu_busy_ratio", "Share of the last second in which a kernel ran.",
     [](auto& gpu) -> figure { return gpu.busy_percent; }, percent},
    {"muster_gpu_memory_used_bytes", "Memory of the GPU in use.", [](auto& gpu) -> figure { return gpu.used_bytes; }},
    {"muster_gpu_power_watts", "Power that the GPU draws.", [](auto& gpu) -> figure { return gpu.watts; }},
    {"muster_gpu_clock_hertz", "Clock of the GPU's multiprocessors.", [](auto& gpu) -> figure { return gpu.clock_mhz; },
     megahertz},
    {"muster_gpu_max_clock_hertz", "The most that this clock can be.", [](auto& gpu) -> figure { return gpu.most_clock_mhz; },
     megahertz},
    {"muster_gpu_temperature_celsius", "Temperature of the GPU.", [](auto& gpu) -> figure { return gpu.celsius; }},
    {"muster_gpu_uncorrected_errors_total", "Uncorrected memory errors since the run began.",
     [](auto& gpu) -> figure { return gpu.ecc_errors; }},
};

/// `NAME="value"`.
std::string label(std::string_view name, std::string_view value) {
    std::string escaped;
    for (char const c : value) {
        if (c == '\\' || c == '"' || c == '\n') escaped += '\\';
        escaped += c == '\n' ? 'n' : c;
    }
    return fmt::format("{}=\"{}\"", name, escaped);
}

/// Lists those whose values a metric has, each with its labels.
template <typename Of>
using rows = std::vector<std::pair<Of const*, std::string>>;

template <typename Of>
void add(std::string& to, std::span<metric<Of> const> metrics, rows<Of> const& of) {
    for (auto const& [name, help, read, unit] : metrics) {
        std::string lines;
        for (auto const& [row, labels] : of)
            if (auto const value = read(*row))
                fmt::format_to(std::back_inserter(lines), "{}{{{}}} {}\n", name, labels, *value * unit);
        if (lines.empty()) continue;
        fmt::format_to(std::back_inserter(to), "# HELP {0} {1}\n# TYPE {0} {2}\n{3}", name, help,
                       name.ends_with("_total") ? "counter" : "gauge", lines);
    }
}

}  // namespace

std::string metrics_text(run_samples const& of, std::string_view user, std::string_view run) {
    auto const labels = fmt::format("{},{},{}", label("job_id", of.job), label("run", run), label("user", user));
    rows<rank_sample> ranks;
    rows<gpu_sample> gpus;
    for (auto const& node : of.nodes) {
        auto const on_host = fmt::format("{},{}", labels, label("host", node.host));
        for (auto const& rank : node.ranks) ranks.emplace_back(&rank, fmt::format("{},rank=\"{}\"", on_host, rank.rank));
        for (auto const& gpu : node.gpus) gpus.emplace_back(&gpu, fmt::format("{},{}", on_host, label("gpu", gpu.number)));
    }
    std::string text;
    add<run_samples>(text, run_metrics, {{&of, labels}});
    add<rank_sample>(text, rank_metrics, ranks);
    add<gpu_sample>(text, gpu_metrics, gpus);
    return text;
}

}  // namespace muster
