#include "launch/samples/metrics_text.hpp"

#include <fmt/format.h>

#include <array>
#include <iterator>

namespace muster {

namespace {

using figure = std::optional<double>;

template <typename T>
figure number(std::optional<T> const& of, double scale = 1) {
    return of ? figure(static_cast<double>(*of) * scale) : std::nullopt;
}

/// A metric of each rank or each GPU.
template <typename Of>
struct metric {
    char const* name;
    char const* type;
    char const* help;
    figure (*read)(Of const&);
};

constexpr double hertz = 1e6, percent = 0.01;

using of_rank = rank_sample const&;
constexpr std::array rank_metrics{
    metric<rank_sample>{"muster_rank_user_seconds_total", "counter", "Processor time of the rank's processes in user mode.",
                        [](of_rank r) { return number(r.user_s); }},
    metric<rank_sample>{"muster_rank_system_seconds_total", "counter", "Processor time of the rank's processes in the kernel.",
                        [](of_rank r) { return number(r.system_s); }},
    metric<rank_sample>{"muster_rank_threads", "gauge", "Threads of the rank's processes.",
                        [](of_rank r) { return number(r.threads); }},
    metric<rank_sample>{"muster_rank_resident_memory_bytes", "gauge", "Resident memory of the rank's processes.",
                        [](of_rank r) { return number(r.memory_bytes); }},
    metric<rank_sample>{"muster_rank_major_page_faults_total", "counter", "Page faults that read from a disk or from swap.",
                        [](of_rank r) { return number(r.major_faults); }},
    metric<rank_sample>{"muster_rank_read_bytes_total", "counter", "Bytes that the rank's processes read from storage.",
                        [](of_rank r) { return number(r.read_bytes); }},
    metric<rank_sample>{"muster_rank_written_bytes_total", "counter", "Bytes that the rank's processes wrote to storage.",
                        [](of_rank r) { return number(r.written_bytes); }},
    metric<rank_sample>{"muster_rank_throttled_seconds_total", "counter",
                        "Time for which the quota of its cgroup held the rank back.",
                        [](of_rank r) { return number(r.cgroup.throttled_s); }},
    metric<rank_sample>{"muster_rank_waiting_seconds_total", "counter",
                        "Time for which the rank waited for others in collectives.",
                        [](of_rank r) { return r.waits ? figure(r.waits->waited_s) : std::nullopt; }},
    metric<rank_sample>{"muster_rank_silent_seconds", "gauge", "Time since the rank last wrote output.",
                        [](of_rank r) { return number(r.silent_s); }},
};

using of_gpu = gpu_sample const&;
constexpr std::array gpu_metrics{
    metric<gpu_sample>{"muster_gpu_busy_ratio", "gauge", "Share of the last second in which a kernel ran.",
                       [](of_gpu g) { return number(g.busy_percent, percent); }},
    metric<gpu_sample>{"muster_gpu_memory_used_bytes", "gauge", "Memory of the GPU in use.",
                       [](of_gpu g) { return number(g.used_bytes); }},
    metric<gpu_sample>{"muster_gpu_power_watts", "gauge", "Power that the GPU draws.", [](of_gpu g) { return number(g.watts); }},
    metric<gpu_sample>{"muster_gpu_clock_hertz", "gauge", "Clock of the GPU's multiprocessors.",
                       [](of_gpu g) { return number(g.clock_mhz, hertz); }},
    metric<gpu_sample>{"muster_gpu_max_clock_hertz", "gauge", "The most that this clock can be.",
                       [](of_gpu g) { return number(g.most_clock_mhz, hertz); }},
    metric<gpu_sample>{"muster_gpu_temperature_celsius", "gauge", "Temperature of the GPU.",
                       [](of_gpu g) { return number(g.celsius); }},
    metric<gpu_sample>{"muster_gpu_uncorrected_errors_total", "counter", "Uncorrected memory errors since the run began.",
                       [](of_gpu g) { return number(g.ecc_errors); }},
};

std::string escaped(std::string_view text) {
    std::string out;
    for (char const c : text) {
        if (c == '\\' || c == '"') out += '\\';
        if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    return out;
}

class page {
  public:
    page(run_samples const& of, std::string_view user, std::string_view run)
        : of_(of), labels_(fmt::format("job_id=\"{}\",run=\"{}\",user=\"{}\"", escaped(of.job), escaped(run), escaped(user))) {}

    /// `rows` of a node are its ranks or GPUs; `label` names one.
    template <typename Of, std::size_t N, typename Rows, typename Label>
    void add(std::array<metric<Of>, N> const& metrics, Rows rows, Label label) {
        for (auto const& each : metrics) {
            bool begun = false;
            for (auto const& node : of_.nodes)
                for (auto const& row : rows(node)) {
                    auto const value = each.read(row);
                    if (!value) continue;
                    if (!begun) begin(each.name, each.type, each.help);
                    begun = true;
                    fmt::format_to(std::back_inserter(text_), "{}{{{},host=\"{}\",{}}} {}\n", each.name, labels_,
                                   escaped(node.host), label(row), *value);
                }
        }
    }
    void add(char const* name, char const* help, double value) {
        begin(name, "gauge", help);
        fmt::format_to(std::back_inserter(text_), "{}{{{}}} {}\n", name, labels_, value);
    }
    std::string take() { return std::move(text_); }

  private:
    void begin(char const* name, char const* type, char const* help) {
        fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
    }
    run_samples const& of_;
    std::string labels_;
    std::string text_;
};

}  // namespace

std::string metrics_text(run_samples const& of, std::string_view user, std::string_view run) {
    page all(of, user, run);
    all.add("muster_run_ranks", "Ranks of the run.", of.world_size);
    all.add("muster_run_start_time_seconds", "When the run began, in seconds since 1970.", of.started_s);
    all.add(
        rank_metrics, [](node_sample const& node) -> auto const& { return node.ranks; },
        [](of_rank rank) { return fmt::format("rank=\"{}\"", rank.rank); });
    all.add(
        gpu_metrics, [](node_sample const& node) -> auto const& { return node.gpus; },
        [](of_gpu gpu) { return fmt::format("gpu=\"{}\"", escaped(gpu.number)); });
    return all.take();
}

}  // namespace muster
