#include "bench/scaling/submitted_study.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/process/run_captured.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "bench/scaling/run_point.hpp"
#include "bench/study/failed_runs.hpp"
#include "bench/study/findings.hpp"
#include "bench/study/program_software.hpp"
#include "bench/study/study_schedule.hpp"
#include "bench/tools/checked_json.hpp"
#include "bench/tools/machine.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr int ask_each_ms = 5000;  // as muster watch
constexpr int most_failures = 120;

/// Options that concern the whole study, not one of its jobs.
constexpr std::string_view not_handed_on[]{"submit",   "submit-options", "wait",  "collect", "dry-run", "output", "expect",
                                           "baseline", "tolerance",      "fresh", "retry",   "muster",  "name"};

/// Reads "muster-bench scale …".
option_words read_line(std::string const& line) {
    auto words = shell_split(line, "the command line");
    words.erase(words.begin(), words.begin() + 2);
    std::vector<option_shape> known;
    for (auto const& row : scale_option_rows()) known.push_back({std::string(row.name), row.letter, !row.argument.empty()});
    return read_option_words(known, words);
}

std::vector<due_run> due_of(study_plan const& plan, int ranks, std::vector<study_run> const& made, bool retry = false) {
    auto due = missing_runs(plan, made, retry);
    std::erase_if(due, [&](due_run const& one) { return one.ranks != ranks; });
    return due;
}

point_job const* last_of(std::span<point_job const> jobs, int ranks) {
    auto const found = std::find_if(jobs.rbegin(), jobs.rend(), [&](auto const& job) { return job.ranks == ranks; });
    return found == jobs.rend() ? nullptr : &*found;
}

study_run lost_run(due_run const& due, point_job const& job, study_point const& point) {
    auto run = run_at(due, point);
    run.started = job.submitted;
    run.status = run_status::failed;
    run.exit_code = 125;
    run.reason = fmt::format("job {}: {}", job.id, job.state);
    return run;
}

}  // namespace

given_options collect_as_begun(given_options const& given, std::string const& line) {
    fs::path const folder = given.text("output");
    if (!given.has("submit") || !given.has("collect") || !given.program().empty() || given.has("net")) return given;
    auto const jobs = read_point_jobs(folder);
    auto const begun = read_journal(folder.string());
    if (jobs.empty() || !begun)
        throw_error(errc::usage, "{} holds no study of jobs; give the folder of one with -o", folder.string());
    auto const now = read_line(line), then = read_line(begun->command);
    std::vector<std::string> words;
    auto const add = [&](std::string const& name, std::string const& value) {
        words.push_back("--" + name);
        if (!value.empty()) words.push_back(value);
    };
    constexpr std::string_view of_that_call[]{"wait", "collect", "dry-run", "fresh", "retry", "output", "ranks", "repeats"};
    for (auto const& [name, value] : then.options)
        if (std::ranges::find(of_that_call, name) == std::end(of_that_call) && !given.has(name)) add(name, value);
    for (auto const& [name, value] : now.options) add(name, value);
    auto ranks = begun->plan.ranks;
    int repeats = begun->plan.repeats;
    for (auto const& job : jobs) {
        if (std::ranges::find(ranks, job.ranks) == ranks.end()) ranks.push_back(job.ranks);
        if (job.repeats != most_repeats) repeats = std::max(repeats, job.repeats);
    }
    if (!given.has("ranks")) add("ranks", fmt::format("{}", fmt::join(ranks, ",")));
    if (!given.has("repeats")) add("repeats", std::to_string(repeats));
    words.emplace_back("--");
    words.insert(words.end(), then.words.begin(), then.words.end());
    return {given.command(), scale_option_rows(), 0, words, true};
}

study merge_points(study out, std::span<std::optional<study> const> parts, std::span<point_job const> jobs) {
    bool told = false;
    std::vector<std::string> numbers;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        int const ranks = out.plan.ranks[i];
        study_point point;
        point.ranks = ranks;
        std::vector<study_run> made;
        if (parts[i]) {
            auto const& part = *parts[i];
            if (!part.points.empty()) point = part.points.front();
            made = latest_runs(part.runs);
            std::erase_if(made, [](auto const& run) { return run.status == run_status::interrupted; });
            for (auto& run : made)
                if (!run.output.empty()) run.output = fmt::format("jobs/{}-ranks/{}", ranks, run.output);
            if (!std::exchange(told, true)) {
                out.launch_command = part.launch_command;
                out.scheduler = part.scheduler;
                out.machine = part.machine;
                out.load = part.load;
                out.variables = part.variables;
                out.software = part.software;
            } else if (auto const changed = changed_files(out.software, part.software); !changed.empty()) {
                out.plan.notes.push_back(
                    fmt::format("the job of {} did not run the first one's program: {}", ranks_text(ranks), trim(changed)));
            }
        }
        auto const* job = last_of(jobs, ranks);
        if (job != nullptr) numbers.push_back(job->id);
        if (job != nullptr && job->ended())
            for (auto const& due : due_of(out.plan, ranks, made))
                if (!due.warmup && due.repetition < job->repeats) made.push_back(lost_run(due, *job, point));
        out.points.push_back(point);
        out.runs.insert(out.runs.end(), made.begin(), made.end());
    }
    std::stable_sort(out.runs.begin(), out.runs.end(), [](auto const& a, auto const& b) { return a.started < b.started; });
    for (std::size_t i = 0; i < out.runs.size(); ++i) out.runs[i].order = static_cast<int>(i);
    for (auto& [name, value] : out.variables)
        if (name == "SLURM_JOB_ID" || name == "PBS_JOBID") value = join(numbers, ",");
    out.plan.notes.push_back("each number of ranks ran in its own job: they did not take turns, and their nodes may differ");
    return out;
}

submitted_study::submitted_study(scale_request const& request, environment const& variables, std::string const& line)
    : request_(request),
      variables_(variables),
      given_(read_line(line)),
      journal_(request.folder.string()),
      header_(study_of(request, line)),
      jobs_(read_point_jobs(request.folder)),
      parts_(request.plan.ranks.size()) {
    begin();
}

void submitted_study::begin() {
    header_.scheduler = "none yet";
    header_.software = digests_of(request_.plan.program);
    auto const begun = journal_.read();
    if (begun && jobs_.empty() && !begun->runs.empty())
        throw_error(errc::usage,
                    "{} holds a study whose runs were made without --submit; give another folder with -o, or leave out --submit "
                    "to go on with it",
                    request_.folder.string());
    if (request_.fresh) {
        ask();
        for (auto const& job : jobs_)
            if (!job.ended())
                throw_error(errc::usage, "--fresh: job {} of this study has not ended; end it first: {} cancel {}", job.id,
                            request_.muster, job.id);
        if (auto const jobs = request_.folder / "jobs"; fs::is_directory(jobs))  // jobs of other numbers of ranks, too
            for (auto const& each : fs::directory_iterator(jobs)) fs::remove(each.path() / "runs.jsonl");
        jobs_.clear();
        write_point_jobs(request_.folder, jobs_);
    } else if (begun && (!jobs_.empty() || !begun->runs.empty())) {
        auto plan = begun->plan;
        for (auto const& job : jobs_)  // of numbers of ranks that were added later
            if (std::ranges::find(plan.ranks, job.ranks) == plan.ranks.end()) plan.ranks.push_back(job.ranks);
        auto differs = difference(plan, request_.plan);
        bool const only_files = differs.empty();
        if (!request_.submit.collect_only && !request_.plan.has_net())  // a built-in network's script is muster's own
            differs += changed_files(begun->software, header_.software);
        if (!differs.empty())
            throw_error(errc::usage, "{} holds another study:{}\ngive another folder with -o, or begin anew with --fresh{}",
                        request_.folder.string(), differs, only_files ? "; --collect still collects what its jobs bring" : "");
        header_.created = begun->created;
        header_.software = begun->software;
        if (request_.submit.collect_only) header_.command = begun->command;
        return;
    }
    if (!request_.submit.dry_run) journal_.begin(header_);
}

fs::path submitted_study::folder_of(int ranks) const {
    return request_.folder / "jobs" / fmt::format("{}-ranks", ranks);
}

std::vector<std::string> submitted_study::command_of(int ranks) const {
    std::vector<std::string> words{self_program().string(), "scale"};
    for (auto const& [name, value] : given_.options) {
        if (std::ranges::find(not_handed_on, name) != std::end(not_handed_on)) continue;
        words.push_back("--" + name);
        if (!value.empty()) words.push_back(value);
    }
    words.insert(words.end(), {"--only", std::to_string(ranks), "--muster", fs::absolute(request_.muster).string(), "--name",
                               request_.name, "--output", fs::absolute(folder_of(ranks)).string()});
    if (request_.retry) words.emplace_back("--retry");
    if (given_.words.empty()) return words;
    words.emplace_back("--");
    words.insert(words.end(), given_.words.begin(), given_.words.end());
    return words;
}

bool submitted_study::all_ended() const noexcept {
    return std::ranges::all_of(jobs_, [](auto const& job) { return job.ended(); });
}

std::string submitted_study::live_text() const {
    std::string out;
    for (auto const& job : jobs_)
        if (!job.ended()) out += fmt::format("job {} ({}): {}\n", job.id, ranks_text(job.ranks), job.state);
    return out;
}

void submitted_study::ask() {
    for (auto& job : jobs_) {
        if (job.ended()) continue;
        auto const before = job;
        ask_for(job, request_.muster, variables_);
        bool const listed = !job.ended() && !request_.submit.wait;  // live_text lists it
        if (job != before && !listed) fmt::print(stderr, "job {} ({}): {}\n", job.id, ranks_text(job.ranks), job.state);
    }
    if (!jobs_.empty()) write_point_jobs(request_.folder, jobs_);
}

void submitted_study::collect() {
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i] = read_journal(folder_of(request_.plan.ranks[i]).string());
    results_ = merge_points(header_, parts_, jobs_);
    if (!results_.runs.empty()) write_json_file((request_.folder / "results.json").string(), to_json(results_));
}

/// Returns the numbers of ranks that lack runs and for which no job waits or runs.
std::vector<int> submitted_study::missing_ranks() const {
    std::vector<int> out;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        int const ranks = request_.plan.ranks[i];
        auto const* job = last_of(jobs_, ranks);
        if (job != nullptr && !job->ended()) continue;
        if (!due_of(request_.plan, ranks, parts_[i] ? parts_[i]->runs : std::vector<study_run>{}, request_.retry).empty())
            out.push_back(ranks);
    }
    return out;
}

/// Says why an ended job needs another one.
std::string submitted_study::why_again(point_job const& job) const {
    auto const at = std::ranges::find(request_.plan.ranks, job.ranks) - request_.plan.ranks.begin();
    auto const& part = parts_[static_cast<std::size_t>(at)];
    auto const due = due_of(request_.plan, job.ranks, part ? part->runs : std::vector<study_run>{});
    if (std::ranges::any_of(due, [&](auto const& run) { return run.repetition < job.repeats; }))
        return fmt::format("job {} has ended without all of its runs ({}); it is submitted again", job.id, job.state);
    if (!due.empty())
        return fmt::format("more runs are asked for: job {} made {}, {} are wanted; another job makes the rest", job.id,
                           job.repeats, request_.plan.repeats);
    return fmt::format("--retry: another job makes the runs of job {} that failed again", job.id);
}

/// Throws errc::usage if muster submit, which does no more than `how` says, refuses the job.
void submitted_study::check(int ranks, std::string const& how, std::vector<std::string> const& command) const {
    auto words = submit_words(request_.muster, ranks, request_.submit.options, command);
    words.insert(words.begin() + 2, how);
    auto const said = run_captured(words, variables_, answer_limit);
    if (said.exit_status != 0)
        throw_error(errc::usage, "the job of {} would be refused, so none was submitted: {}", ranks_text(ranks),
                    without_controls(trim(said.err)));
}

/// Checks the program as if it were the job's: otherwise muster submit would see muster-bench, and not what that starts.
void submitted_study::check_program(int ranks) const {
    if (given_.words.empty()) return;
    check(ranks, "--dry-run", fill_placeholders(given_.words, numbers_of(request_.plan, {ranks}, 1)));
}

void submitted_study::print_missing() const {
    for (int const ranks : missing_ranks()) {
        check_program(ranks);
        auto words = submit_words(request_.muster, ranks, request_.submit.options, command_of(ranks));
        fmt::print("## {}: {}\n", ranks_text(ranks), shell_join(words));
        std::fflush(stdout);
        words.insert(words.begin() + 2, "--dry-run");
        if (auto const ended = run_program(words, variables_, {.out_fd = 1, .err_fd = 2}); ended.exit_status != 0)
            throw_error(errc::unavailable, "the job of {} would be refused, as muster says above", ranks_text(ranks));
    }
}

void submitted_study::submit_missing() {
    auto const missing = missing_ranks();
    // Finds what cannot be submitted before anything is queued.
    for (int const ranks : missing) {
        check_program(ranks);
        check(ranks, "--check-only", command_of(ranks));
    }
    std::vector<std::string> queued;
    std::vector<std::string> told;
    for (int const ranks : missing) {
        if (auto const* last = last_of(jobs_, ranks)) fmt::print(stderr, "{}: {}\n", ranks_text(ranks), why_again(*last));
        fs::create_directories(folder_of(ranks));
        auto const words = submit_words(request_.muster, ranks, request_.submit.options, command_of(ranks));
        try {
            jobs_.push_back(submit_point(words, ranks, told, variables_));
        } catch (error const& e) {
            if (queued.empty()) throw;
            auto const ids = join(queued, " ");
            throw_error(e.code(), "{}; queued are {}: end them by {} cancel {}, or submit what is missing by the same command",
                        e.what(), ids, request_.muster, ids);
        }
        queued.push_back(jobs_.back().id);
        jobs_.back().repeats = request_.plan.repeats;
        write_point_jobs(request_.folder, jobs_);
        fmt::print(stderr, "job {}: {}\n", jobs_.back().id, ranks_text(ranks));
    }
}

/// Follows the jobs to the end of all. It goes on even if the scheduler does not answer for a while.
std::optional<int> submitted_study::follow() {
    int failures = 0;
    while (!all_ended()) {
        pollfd signal{signals_.fd(), POLLIN, 0};
        ::poll(&signal, 1, ask_each_ms);
        if (auto const came = signals_.came()) {
            fmt::print(stderr, "stopped by signal {}; the jobs go on, and the same command collects what they bring:\n{}", *came,
                       live_text());
            return 128 + *came;
        }
        try {
            ask();
            failures = 0;
        } catch (error const& e) {
            if (++failures == 1) fmt::print(stderr, "muster-bench: note: {}; asking on\n", e.what());
            if (failures == most_failures) throw;
        }
    }
    return {};
}

std::optional<int> submitted_study::go_on() {
    ask();
    collect();
    if (request_.submit.dry_run) {
        print_missing();
        return 0;
    }
    if (!request_.submit.collect_only) submit_missing();
    if (request_.submit.wait)
        if (auto const code = follow()) return code;
    collect();
    for (auto const& job : jobs_) {
        auto const* last = last_of(jobs_, job.ranks);
        bool const lost =
            job.ended() && last == &job && !job.output.empty() && std::ranges::any_of(results_.runs, [&](auto const& run) {
                return run.ranks == job.ranks && run.reason.starts_with(fmt::format("job {}: ", job.id));
            });
        auto const said = lost ? last_lines(job.output) : std::string();  // a job that never started has no output
        if (lost)
            fmt::print(stderr, "job {} ({}) ended without all of its runs: {}{}\n", job.id, ranks_text(job.ranks), job.state,
                       said.empty() ? said : fmt::format("; the end of {}:{}", job.output, said));
    }
    return {};
}

}  // namespace muster
