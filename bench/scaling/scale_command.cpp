#include "bench/tools/commands.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "bench/report/report_command.hpp"
#include "bench/scaling/plan_point.hpp"
#include "bench/scaling/run_point.hpp"
#include "bench/scaling/scale_request.hpp"
#include "bench/scaling/submitted_study.hpp"
#include "bench/study/failed_runs.hpp"
#include "bench/study/findings.hpp"
#include "bench/study/program_software.hpp"
#include "bench/study/study_journal.hpp"
#include "bench/tools/checked_json.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

/// Returns the variables that affect speed, none of which holds a secret.
std::vector<std::pair<std::string, std::string>> telling_variables(environment const& variables) {
    constexpr std::string_view beginnings[]{"OMP_",  "KMP_",  "GOMP_",  "MKL_",   "OPENBLAS_", "NCCL_",       "UCX_", "FI_",
                                            "OMPI_", "MPIR_", "MPICH_", "I_MPI_", "CUDA_",     "MUSTER_BIND", "HSA_", "MALLOC_"};
    constexpr std::string_view secrets[]{"KEY", "TOKEN", "SECRET", "PASSWORD"};
    constexpr std::string_view names[]{"SLURM_JOB_ID", "SLURM_JOB_PARTITION", "SLURM_CLUSTER_NAME", "PBS_JOBID", "LSB_JOBID"};
    std::vector<std::pair<std::string, std::string>> out;
    for (auto const& [name, value] : variables) {
        auto const holds = [&](std::string_view part) { return name.find(part) != std::string::npos; };
        bool const begins =
            std::any_of(std::begin(beginnings), std::end(beginnings), [&](auto part) { return name.starts_with(part); });
        bool const named = std::find(std::begin(names), std::end(names), name) != std::end(names);
        if ((begins || named) && std::none_of(std::begin(secrets), std::end(secrets), holds)) out.emplace_back(name, value);
    }
    return out;
}

/// One study from its plan to its last run.
class scaling_study {
  public:
    scaling_study(scale_request const& request, environment const& variables, std::string const& line)
        : request_(request), variables_(variables), journal_(request.folder.string()), results_(study_of(request, line)) {
        results_.variables = telling_variables(variables);
        results_.software = software_of(request.plan.program, variables);
        for (int const ranks : request.only.empty() ? request.plan.ranks : request.only) {
            auto planned = plan_point(request.muster, request.plan, ranks, variables);
            results_.scheduler = planned.scheduler;
            results_.points.push_back(std::move(planned.point));
        }
        results_.machine.gpus = results_.points.back().gpus.empty() ? "none" : results_.points.back().gpus;
    }

    /// Makes the missing runs; returns the exit code if it cannot make them all.
    int run() {
        {
            crowd_watch const before;
            results_.load = before.load(false);
        }
        auto const setting = this->setting();
        auto const all = ours(all_runs(request_.plan));
        results_.launch_command = shell_join(run_command(setting, all.front(), point_of(all.front().ranks).nodes));
        begin();
        auto const due = ours(missing_runs(request_.plan, made_, request_.retry));
        auto const total = all.size();
        auto done = total - due.size();
        if (done > 0)
            fmt::print(stderr, "going on with the study in {}: {} of {} runs are done\n", request_.folder.string(), done, total);
        if (!due.empty()) refuse_unknown_metric();
        for (auto const& one : due) {
            if (auto const signal = signals_.came()) return stopped(*signal);
            crowd_watch crowd;
            if (auto const load = crowd.load(false); request_.strict && load.crowded_before()) return refused(load);
            auto run = run_point(setting, one, point_of(one.ranks), static_cast<int>(made_.size()), crowd);
            journal_.add(run);
            made_.push_back(std::move(run));
            write_results();
            auto const& last = made_.back();
            fmt::print(stderr, "[{}/{}] {}, {}: {}\n", ++done, total, ranks_text(one.ranks),
                       one.warmup ? "warm-up" : fmt::format("repeat {}", one.repetition + 1), progress_text(last, request_.plan));
            if (last.status == run_status::interrupted) return stopped(signals_.came().value_or(SIGINT));
            note_unmatched();
            refuse_unknown_metric();
        }
        write_results();
        return 0;
    }

    study const& results() const noexcept { return results_; }

  private:
    run_setting setting() { return {request_.muster, request_.folder, request_.plan, variables_, signals_, is_local(), {}}; }

    /// Leaves out the runs that other jobs make.
    std::vector<due_run> ours(std::vector<due_run> all) const {
        if (!request_.only.empty())
            std::erase_if(all,
                          [&](auto const& run) { return std::ranges::find(request_.only, run.ranks) == request_.only.end(); });
        return all;
    }

    bool is_local() const {
        return results_.scheduler == "local" &&
               std::all_of(results_.points.begin(), results_.points.end(), [](auto const& p) { return p.nodes == 1; });
    }

    study_point const& point_of(int ranks) const {
        return *std::find_if(results_.points.begin(), results_.points.end(), [&](auto const& p) { return p.ranks == ranks; });
    }

    void begin() {
        std::optional<study> begun;
        if (!request_.fresh) begun = journal_.read();
        if (!begun || begun->runs.empty()) {
            journal_.begin(results_);
            return;
        }
        std::vector<std::string> later;
        for (int const ranks : request_.plan.ranks)
            if (std::ranges::find(begun->plan.ranks, ranks) == begun->plan.ranks.end()) later.push_back(ranks_text(ranks));
        for (auto const& run : begun->runs)  // of numbers of ranks that were added later
            if (std::ranges::find(begun->plan.ranks, run.ranks) == begun->plan.ranks.end())
                begun->plan.ranks.push_back(run.ranks);
        auto differs = difference(begun->plan, request_.plan);
        if (!request_.plan.has_net()) differs += changed_files(begun->software, results_.software);  // else muster's own
        if (begun->scheduler == "local" &&
            (begun->machine.processor != results_.machine.processor || begun->machine.cores != results_.machine.cores))
            differs += fmt::format("\n  machine: {} with {} cores then, {} with {} now", begun->machine.host,
                                   begun->machine.cores, results_.machine.host, results_.machine.cores);
        if (!differs.empty())
            throw_error(errc::usage, "{} holds another study:{}\ngive another folder with -o, or begin anew with --fresh",
                        request_.folder.string(), differs);
        if (!later.empty() && request_.only.empty())
            results_.plan.notes.push_back(
                fmt::format("{} came later: they did not take turns with the others from the beginning", join(later, ", ")));
        made_ = std::move(begun->runs);
        results_.created = begun->created;
        results_.load = begun->load;
        results_.machine = begun->machine;
    }

    void write_results() {
        results_.runs = latest_runs(made_);
        if (!results_.runs.empty()) write_json_file((request_.folder / "results.json").string(), to_json(results_));
    }

    /// The first runs show that a name is mistyped, not hours later.
    void refuse_unknown_metric() const {
        auto const& ranks = request_.only.empty() ? request_.plan.ranks : request_.only;
        auto const why = unknown_metric(request_.plan, request_.demands, ranks, made_);
        if (why.empty()) return;
        bool const expression = why.starts_with("--metric ");
        throw_error(
            errc::usage, "{}; the study stops here: {}{}", why,
            expression ? "correct the expression, and begin anew with --fresh" : "correct the name, and the same command goes on",
            printed_last(made_.back()));
    }

    /// This is not yet an error: a program may print it only with other numbers of ranks.
    void note_unmatched() const {
        auto const& run = made_.back();
        auto const ended_well = [](auto const& each) { return each.status == run_status::ok; };
        if (!ended_well(run) || std::ranges::count_if(made_, ended_well) != 1) return;
        for (auto const& pattern : request_.plan.patterns)
            if (std::ranges::find(run.metrics, pattern.name, &metric_series::name) == run.metrics.end())
                fmt::print(
                    stderr,
                    "muster-bench: note: no line of this run matches --metric {}; if none of any number of ranks does, the "
                    "study stops{}\n",
                    shell_quote(pattern_text(pattern)), printed_last(run));
    }

    std::string printed_last(study_run const& run) const {
        auto const path = request_.folder / run.output;
        auto const lines = run.output.empty() ? std::string() : last_lines(path);
        return lines.empty() ? lines : fmt::format("\nthe end of what it printed, {}:{}", path.string(), lines);
    }

    int stopped(int signal) const {
        auto const advice = request_.only.empty()
                                ? fmt::format("the same command goes on with the study in {}", request_.folder.string())
                                : std::string("what its runs have brought is kept");  // a job, whose command nobody knows
        fmt::print(stderr, "stopped by signal {}; {}\n", signal, advice);
        return 128 + signal;
    }

    int refused(machine_load const& load) const {
        fmt::print(stderr, "muster-bench: error: --strict: {}; end them or wait, and give the same command to go on\n",
                   crowd_text(load));
        return 2;
    }

    scale_request const& request_;
    environment const& variables_;
    stop_signals signals_;
    study_journal journal_;
    study results_;
    std::vector<study_run> made_;
};

/// If all runs failed, there is no table to show.
void refuse_if_all_failed(study const& results, fs::path const& folder) {
    std::size_t ended_well = 0;
    study_run const* first = nullptr;
    for (auto const& run : results.runs) {
        ended_well += run.counts() ? 1 : 0;
        if (first == nullptr && run.status != run_status::ok) first = &run;
    }
    if (ended_well > 0 || first == nullptr) return;
    auto const output = folder / first->output;
    auto const messages = first->output.empty()
                              ? std::string()
                              : fmt::format("; the end of its messages in {}:{}", output.string(), last_lines(output));
    throw_error(errc::peer_failed, "no run ended well; the first that failed: {}: {}{}", ranks_text(first->ranks), first->reason,
                messages);
}

bool has_failures(study const& results) {
    return std::any_of(results.runs.begin(), results.runs.end(),
                       [](auto const& r) { return !r.warmup && r.status != run_status::ok; });
}

/// Prints the table and what explains it.
void print_study(study const& results, fs::path const& folder) {
    fmt::print("{}{}{}", scaling_text(results), findings_text(find_causes(results)), failures_text(results, folder));
    std::fflush(stdout);
}

/// Judges a study with all its runs, and writes its files. Returns the exit code.
int conclude(study const& results, scale_request const& request, study const* baseline, environment const& variables) {
    auto const judged = judge_study(results, request.demands, baseline);
    fmt::print("{}", judgements_text(judged));
    bool const good = none_broken(judged);
    std::fflush(stdout);
    auto const file = (request.folder / "results.json").string();
    fmt::print(stderr, "wrote {}\n", file);
    write_report(gather_report({{{results, file, judged}}}), request.folder, request.only.empty(), variables);
    return good && !has_failures(results) ? 0 : 1;
}

/// Runs the study whose runs are made in jobs.
int scale_in_jobs(scale_request const& request, study const* baseline, environment const& variables, std::string const& line) {
    submitted_study running(request, variables, line);
    if (auto const code = running.go_on()) return *code;
    auto const& results = running.results();
    if (!results.runs.empty()) {
        if (running.all_ended()) refuse_if_all_failed(results, request.folder);
        if (auto const why = unknown_metric(request.plan, request.demands, request.plan.ranks, results.runs); !why.empty())
            fmt::print(stderr, "muster-bench: note: {}\n", why);
        print_study(results, request.folder);
    }
    if (running.all_ended() && !results.runs.empty()) return conclude(results, request, baseline, variables);
    fmt::print(stderr,
               "{}the same command collects what they bring, and writes the page {} once all have ended; with --wait it stays "
               "until they have ended\n",
               running.live_text(), (request.folder / "report.html").string());
    return 0;
}

}  // namespace

command_row const scale_row{
    .name = "scale",
    .summary = "run a program on several numbers of ranks: table, results, report",
    .synopsis = "[options] [-- PROGRAM [args…]]",
    .examples =
        "  muster-bench scale --ranks 1,2,4 --strong --batch 256 -- python3 train.py --batch {batch}\n"
        "  muster-bench scale --ranks 1,2 --rate-metric images_per_s --expect 'speedup[2]>=1.8' -- python3 train.py\n"
        "  muster-bench scale --ranks 1,2,4 --net mnist --data fashion-mnist.h5 -o scaling\n"
        "  muster-bench scale --ranks 1,2,4 --net cifar10 --protocol published --epochs 2\n"
        "  muster-bench scale --ranks 4,8,16 --submit --submit-options '--site polaris --account A --time 30min' -- ./train\n",
    .options = scale_option_rows(),
    .description =
        "PROGRAM is started by muster run, so inside of a job on its nodes. Its arguments may hold {ranks}, {nodes}, {repeat} (0 "
        "in\n"
        "warm-up) and {batch}; {{ is a brace. A line 'muster-metric: NAME VALUE [UNIT]' that it prints is a metric. The same "
        "command\n"
        "goes on with a study that was stopped. Exit code 1: a run failed, or a bound is broken; 2: --strict refused.",
    .takes_program = true,
};

/// A study that goes on cannot be better or worse than itself.
void refuse_itself_as_baseline(scale_request const& request) {
    fs::path file = request.demands.baseline;
    std::error_code fault;
    if (fs::is_directory(file, fault)) file /= "results.json";
    if (!request.fresh && fs::equivalent(file, request.folder / "results.json", fault))
        throw_error(
            errc::usage,
            "--baseline {}: it is this study, which goes on; give another folder with -o, or --fresh to make all runs anew",
            request.demands.baseline);
}

int scale_command(given_options const& given, environment const& variables, std::string const& line) {
    auto const request = read_scale_request(collect_as_begun(given, line), variables);
    std::optional<study> baseline;
    if (!request.demands.baseline.empty()) refuse_itself_as_baseline(request);
    if (!request.demands.baseline.empty()) baseline = read_study_file(request.demands.baseline);
    if (baseline) refuse_other_baseline(request.plan, *baseline);
    if (request.submit.wanted) return scale_in_jobs(request, baseline ? &*baseline : nullptr, variables, line);
    if (fs::exists(request.folder / "jobs.json"))
        throw_error(errc::usage,
                    "{} holds a study whose runs are made by jobs; give --submit to go on with it, or another folder with -o",
                    request.folder.string());
    auto own = variables;
    if (!request.only.empty()) own.unset("MUSTER_OUTPUT_DIR");  // it is the job's: a study keeps all output of its runs itself
    scaling_study running(request, own, line);
    if (int const code = running.run(); code != 0) return code;
    auto const& results = running.results();
    refuse_if_all_failed(results, request.folder);
    print_study(results, request.folder);
    return conclude(results, request, baseline ? &*baseline : nullptr, variables);
}

}  // namespace muster
