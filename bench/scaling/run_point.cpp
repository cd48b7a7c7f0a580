#include "bench/scaling/run_point.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/process/files.hpp"
#include "base/process/process.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trust/open_output_file.hpp"
#include "base/units.hpp"
#include "bench/scaling/plan_point.hpp"
#include "bench/study/failed_runs.hpp"
#include "bench/study/findings.hpp"
#include "bench/study/scaling_table.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kept_end_bytes = 16384;
constexpr duration extra_patience = std::chrono::seconds(60);  // for muster run to end a run that exceeds its limit

/// A file to which a program may append: what it held before a run does not count as the run's metrics.
class metric_file {
  public:
    explicit metric_file(std::string path) : path_(std::move(path)) {
        if (!path_.empty()) before_ = look();
    }

    /// Throws errc::not_found, errc::invalid_data.
    std::vector<metric_series> read() const {
        if (path_.empty()) return {};
        auto const now = look();
        if (now.st_mode == 0) throw_error(errc::not_found, "the program left no file {}", path_);
        auto const text = read_text_file(path_, std::size_t{1} << 30);
        bool const appended = now.st_ino == before_.st_ino && now.st_dev == before_.st_dev && now.st_size >= before_.st_size;
        auto const from = std::min(text.size(), appended ? static_cast<std::size_t>(before_.st_size) : 0);
        return read_metric_lines(std::string_view(text).substr(from), path_);
    }

  private:
    struct stat look() const {
        struct stat out {};
        if (::stat(path_.c_str(), &out) != 0) out = {};
        return out;
    }
    std::string path_;
    struct stat before_ {};
};

void set_end(study_run& run, watched_result const& ended, study_plan const& plan) {
    run.wall_s = ended.wall.count();
    run.exit_code = ended.exit_code;
    bool const late = plan.timeout_s > 0 && ended.exit_code == 124 && run.wall_s >= plan.timeout_s;
    if (ended.stopped) {
        run.status = run_status::interrupted;
        run.reason = fmt::format("interrupted by signal {}", *ended.stopped);
    } else if (ended.killed_at_limit || late) {
        run.status = run_status::timed_out;
        run.reason = fmt::format("took longer than {}", format_duration(duration(plan.timeout_s)));
    } else if (ended.exit_code != 0) {
        run.status = run_status::failed;
        run.reason = fmt::format("exit code {}", ended.exit_code);
    }
}

void fail(study_run& run, std::string const& why) {
    if (run.status != run_status::ok) return;
    run.status = run_status::failed;
    run.reason = why;
}

/// Reads metrics that are not in its output.
void read_file(study_run& run, metric_file const& file) {
    if (run.status != run_status::ok) return;
    try {
        for (auto& series : file.read()) run.metrics.push_back(std::move(series));
    } catch (error const& e) {
        fail(run, e.what());
    }
}

}  // namespace

run_numbers numbers_of(study_plan const& plan, due_run const& due, int nodes) {
    run_numbers out{due.ranks, nodes, due.warmup ? 0 : due.repetition + 1, plan.batch};
    if (plan.batch && plan.series == work_series::strong) out.batch = *plan.batch / due.ranks;
    return out;
}

std::vector<std::string> run_command(run_setting const& setting, due_run const& due, int nodes) {
    auto const& plan = setting.plan;
    std::vector<std::string> command{setting.muster, "run", "--tag-output"};  // the tag shows which rank printed a metric
    for (auto const& word : point_options(plan, due.ranks)) command.push_back(word);
    if (plan.timeout_s > 0) command.insert(command.end(), {"--timeout", fmt::format("{:g}s", plan.timeout_s)});
    command.emplace_back("--");
    auto const program = plan.has_net() ? plan.program : fill_placeholders(plan.program, numbers_of(plan, due, nodes));
    command.insert(command.end(), program.begin(), program.end());
    return command;
}

study_run run_at(due_run const& due, study_point const& point) {
    study_run run;
    run.ranks = due.ranks;
    run.nodes = point.nodes;
    run.hosts = point.hosts;
    run.repetition = due.repetition;
    run.warmup = due.warmup;
    return run;
}

study_run run_point(run_setting const& setting, due_run const& due, study_point const& point, int order, crowd_watch& crowd) {
    auto run = run_at(due, point);
    run.order = order;
    run.started = utc_now();
    run.oversubscribed = point.oversubscribed;
    run.output = fmt::format("runs/{}{:04}-{}-ranks{}.txt", setting.outputs, order + 1, due.ranks, due.warmup ? "-warmup" : "");
    auto const output = (setting.folder / run.output).string();
    auto const kept = open_output_file(output);

    std::string end;  // the end of its output
    metric_reader reader(setting.plan.patterns);
    metric_file const file(fill_placeholders(setting.plan.metric_file, numbers_of(setting.plan, due, point.nodes)));
    duration const limit(setting.plan.timeout_s > 0 ? setting.plan.timeout_s + extra_patience.count() : 0);
    try {
        auto const ended = run_watched(
            run_command(setting, due, point.nodes), setting.variables, setting.signals, limit, [&](std::string_view text) {
                write_all(kept.get(), text, output);
                reader.add(text);
                end = end.substr(end.size() - std::min(end.size(), kept_end_bytes)) + std::string(text);
            });
        set_end(run, ended, setting.plan);
    } catch (program_error const& e) {
        fail(run, e.what());
        run.exit_code = e.exit_status();
    }
    if (run.status == run_status::failed || run.status == run_status::timed_out) run.last_words = last_words(end);
    run.load = crowd.load(setting.local);
    reader.finish();
    run.metrics = reader.metrics();
    run.remarked = read_remark(end);
    if (run.status == run_status::ok && !reader.fault().empty())
        fmt::print(stderr, "muster-bench: note: {}: {}; see {}\n", ranks_text(run.ranks), reader.fault(), output);
    read_file(run, file);
    return run;
}

std::string progress_text(study_run const& run, study_plan const& plan) {
    if (run.status != run_status::ok) return outcome_of(run);
    auto out = fmt::format("{:.3f} s", run.wall_s);
    std::vector<std::string> shown;
    for (auto const& series : run.metrics) {
        if (std::find(shown.begin(), shown.end(), series.name) != shown.end() || shown.size() == 3) continue;
        shown.push_back(series.name);
        out += fmt::format(", {} {}", series.name, format_value(*value_of(run, series.name, plan)));
    }
    return out;
}

}  // namespace muster
