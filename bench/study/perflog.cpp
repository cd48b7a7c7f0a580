#include "bench/study/perflog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/text.hpp"
#include "bench/study/scaling_table.hpp"
#include "bench/tools/machine.hpp"

namespace muster {

namespace {

/// No field may hold what divides fields and lines.
std::string field(std::string_view text) {
    std::string out(text);
    for (auto& c : out)
        if (c == '|' || static_cast<unsigned char>(c) < ' ') c = ' ';
    return out;
}

std::string file_name(std::string_view text) {
    std::string out;
    for (char const c : text) out += is_metric_name(std::string_view(&c, 1)) && c != '/' ? c : '_';
    return out.empty() || out.front() == '.' ? "_" + out : out;
}

/// Metrics that any row has, the judged one first.
std::vector<std::string> names_of(std::vector<scaling_row> const& rows) {
    std::vector<std::string> names{"speedup", "efficiency"};
    for (auto const& row : rows)
        for (auto const& metric : row.metrics)
            if (std::find(names.begin(), names.end(), metric.name) == names.end()) names.push_back(metric.name);
    return names;
}

std::string value_of(scaling_row const& row, std::string const& name, std::string& unit) {
    if (name == "speedup" || name == "efficiency") {
        unit = "1";
        if (!row.speedup) return {};
        return fmt::format("{:.6g}", name == "speedup" ? row.speedup->value : row.efficiency);
    }
    auto const* metric = row.find(name);
    if (metric == nullptr) return {};
    unit = field(metric->unit);
    return fmt::format("{:.9g}", metric->value.median);
}

}  // namespace

std::string perflog_text(study const& results, study const* baseline, double tolerance, std::string const& system,
                         std::string const& partition, std::string const& now) {
    auto const rows = scaling_rows(results);
    auto const old = baseline != nullptr ? scaling_rows(*baseline) : std::vector<scaling_row>{};
    auto const names = names_of(rows);
    std::string out =
        "result|job_completion_time|descr|environ|job_exitcode|job_nodelist|name|num_tasks|num_tasks_per_node|partition|system";
    for (auto const& name : names) out += fmt::format("|{0}_value|{0}_unit|{0}_ref|{0}_lower|{0}_upper", name);
    out += '\n';
    for (auto const& row : rows) {
        std::vector<std::string> hosts;
        int code = 0;
        for (auto const& run : results.runs) {
            if (run.ranks != row.ranks || run.warmup) continue;
            hosts = run.hosts;
            if (code == 0) code = run.exit_code;
        }
        out += fmt::format("{}|{}|{}|muster {}|{}|{}|{} %ranks={}|{}|{}|{}|{}", row.failed == 0 && row.runs > 0 ? "pass" : "fail",
                           now, field(results.command), field(results.version), code, field(join(hosts, ",")),
                           field(results.name), row.ranks, row.ranks, (row.ranks + row.nodes - 1) / std::max(1, row.nodes),
                           field(partition), field(system));
        auto const was = std::find_if(old.begin(), old.end(), [&](auto const& r) { return r.ranks == row.ranks; });
        for (auto const& name : names) {
            std::string unit, ignored, reference = "null", lower = "null", upper = "null";
            auto const value = value_of(row, name, unit);
            if (name == results.plan.judged.name && was != old.end()) {
                reference = value_of(*was, name, ignored);
                (results.plan.judged.rate ? lower : upper) =
                    fmt::format("{:g}", results.plan.judged.rate ? -tolerance : tolerance);
            }
            out += fmt::format("|{}|{}|{}|{}|{}", value.empty() ? "null" : value, unit, reference, lower, upper);
        }
        out += '\n';
    }
    return out;
}

std::string append_perflog(study const& results, study const* baseline, double tolerance, std::string const& folder,
                           environment const& variables) {
    auto const system = variables.get_or("SLURM_CLUSTER_NAME", results.machine.host);
    auto const partition = variables.get_or("SLURM_JOB_PARTITION", variables.get_or("PBS_QUEUE", "default"));
    auto const where = std::filesystem::path(folder) / "perflog" / file_name(system) / file_name(partition);
    std::error_code ignored;
    std::filesystem::create_directories(where, ignored);
    auto const path = (where / (file_name(results.name) + ".log")).string();
    auto text = perflog_text(results, baseline, tolerance, system, partition, utc_now());
    auto const header = text.substr(0, text.find('\n') + 1);
    if (read_text_file(path).starts_with(header)) text.erase(0, header.size());
    std::ofstream file(path, std::ios::binary | std::ios::app);
    file << text;
    file.close();
    if (!file) throw_system("write", path);
    return path;
}

}  // namespace muster
