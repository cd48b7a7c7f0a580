// `muster jobs` lists the user's own jobs, from one question to the scheduler.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>

#include "base/command/command_set.hpp"
#include "base/command/print_note.hpp"
#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/text_table.hpp"
#include "base/throw_error.hpp"
#include "base/trust/foreign_json.hpp"
#include "launch/commands/commands.hpp"
#include "launch/help/help.hpp"
#include "launch/jobs/job_commands.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/jobs/queue/ask_scheduler.hpp"
#include "launch/jobs/queue/queued_job.hpp"
#include "launch/record/run_record.hpp"
#include "launch/scheduler/commands/slurm_commands.hpp"
#include "launch/scheduler/flux.hpp"

namespace muster {

using nlohmann::ordered_json;

namespace {

std::string or_dash(std::string const& text) {
    return text.empty() ? "-" : without_controls(text);
}

std::string reason_shown(queued_job const& job) {
    if (job.phase == job_phase::waiting) return explain_wait(job);
    if (job.phase == job_phase::running) return "-";
    auto const code = job.status ? fmt::format("exit code {}", *job.status) : std::string();
    return or_dash(code.empty() || job.reason.empty() ? code + job.reason : fmt::format("{} ({})", code, job.reason));
}

std::string table_of(std::vector<queued_job> const& jobs, std::size_t width) {
    text_table table({"job", "name", "state", "nodes", "time", "limit", "why"});
    for (auto const& job : jobs)
        table.add({or_dash(job.id), or_dash(job.name), or_dash(job.state), or_dash(job.nodes), or_dash(job.used),
                   or_dash(job.limit), reason_shown(job)});
    return table.text(width);
}

constexpr std::time_t shown_for_s = 7 * 24 * 3600;

/// Returns a job that the scheduler has forgotten, or, if it is silent, says nothing about, as its runs have recorded it.
queued_job as_recorded(job_record const& record, bool silent) {
    auto const files = find_job_files(record.id, record);
    queued_job job;
    job.id = job.raw_id = record.id;
    job.name = record.name;
    job.phase = job_phase::ended;
    job.start = record.submitted_at;
    job.status = last_run_exit(files);
    job.state = job.status ? "ended" : had_nothing_to_do(files) ? "ended" : "unknown";
    if (!job.status) job.reason = had_nothing_to_do(files) ? "it had nothing left to do" : "no run of it has left an exit code";
    if (silent && job.state == "unknown") job.phase = job_phase::unknown;
    return job;
}

/// Returns the scheduler to ask; without one nothing, and `silence` then says so.
std::optional<queue_kind> queue_to_ask(environment const& variables, std::string& silence) try {
    return find_queue(variables);
} catch (error const& e) {
    silence = e.what();
    return std::nullopt;
}

/// Returns what the scheduler says; nothing if it does not answer, and `silence` then says why; asks no second time.
std::vector<queued_job> ask_once(std::optional<queue_kind> kind, std::vector<std::string> const& ids,
                                 environment const& variables, std::string& silence) try {
    return silence.empty() && kind ? list_jobs(*kind, ids, variables) : std::vector<queued_job>();
} catch (error const& e) {
    if (e.code() != errc::unavailable) throw;
    silence = e.what();
    return {};
}

/// Adds jobs that muster submitted to this scheduler within a week and that have ended, as the scheduler knows them or their runs
/// recorded them, the latest first. Of a silent scheduler all of them; without a scheduler, those of any.
void add_ended(std::vector<queued_job>& jobs, std::optional<queue_kind> kind, environment const& variables,
               std::string& silence) {
    auto records = recent_job_records(variables, std::time(nullptr) - shown_for_s);
    auto const cluster = find_cluster(variables);
    std::erase_if(records, [&](job_record const& one) {
        return (kind && one.scheduler != to_string(*kind)) ||
               (!one.cluster.empty() && !cluster.empty() && one.cluster != cluster);
    });
    std::vector<std::string> ids;
    for (auto const& one : records) ids.push_back(one.id);
    auto const known = ids.empty() ? std::vector<queued_job>() : ask_once(kind, ids, variables, silence);
    for (auto const& record : records) {
        std::vector<queued_job> ended;
        bool goes_on =
            std::ranges::any_of(jobs, [&](auto const& job) { return job.phase != job_phase::ended && is_meant(job, record.id); });
        for (auto const& job : known) {
            if (!is_meant(job, record.id)) continue;
            goes_on = goes_on || job.phase != job_phase::ended;
            if (job.phase == job_phase::ended) ended.push_back(job);
        }
        if (ended.empty() && !goes_on) ended.push_back(as_recorded(record, !silence.empty()));
        jobs.insert(jobs.end(), ended.begin(), ended.end());
    }
}

}  // namespace

ordered_json json_of(queued_job const& job) {
    ordered_json row{{"id", job.id},     {"name", job.name},   {"state", job.state}, {"nodes", job.nodes},
                     {"time", job.used}, {"limit", job.limit}, {"start", job.start}, {"reason", job.reason}};
    row["phase"] = job.phase == job_phase::waiting   ? "waiting"
                   : job.phase == job_phase::running ? "running"
                   : job.phase == job_phase::unknown ? "unknown"
                                                     : "ended";
    row["why"] = job.phase == job_phase::waiting ? ordered_json(explain_wait(job)) : ordered_json();
    row["exit_code"] = job.status ? ordered_json(*job.status) : ordered_json();
    return row;
}

int jobs_command(std::vector<std::string> const& args, environment const& variables) {
    auto const given = resolve_settings("jobs", options_first("jobs", args), real_settings(variables));
    if (print_help_if_asked("jobs", given)) return 0;
    if (!given.command.empty())
        throw_error(errc::usage, "muster jobs takes no argument '{}'; muster show {} tells of one job", given.command.front(),
                    given.command.front());
    std::string silence;
    auto const kind = queue_to_ask(variables, silence);
    auto jobs = ask_once(kind, {}, variables, silence);
    if (given.flag("all")) add_ended(jobs, kind, variables, silence);
    if (jobs.empty() && !silence.empty()) throw error(errc::unavailable, silence);
    if (!silence.empty()) print_note("{}; what follows is from muster's own records, and may be out of date", silence);
    int const code = silence.empty() ? 0 : 1;
    if (given.flag("json")) {
        auto rows = ordered_json::array();
        for (auto const& job : jobs) rows.push_back(json_of(job));
        auto const scheduler = kind ? ordered_json(to_string(*kind)) : ordered_json();
        fmt::print("{}\n", json_text(ordered_json{{"schema", "muster.jobs/1"}, {"scheduler", scheduler}, {"jobs", rows}}, 2));
        return code;
    }
    fmt::print("{}", table_of(jobs, terminal_width(variables)));
    if (jobs.empty() && given.flag("all"))
        print_note("no job of yours waits or runs, and muster has submitted none in the last 7 days");
    else if (jobs.empty())
        print_note("no job of yours waits or runs; --all lists those of the last 7 days too");
    return code;
}

bool is_run_folder(std::string const& word) {
    return !is_job_number(word) && path_exists(word + "/run.json");
}

job_files files_of_run(std::string const& folder) {
    std::error_code fault;
    job_files files;
    files.first_folder = std::filesystem::absolute(folder, fault).lexically_normal().string();
    if (files.first_folder.size() > 1 && files.first_folder.ends_with('/')) files.first_folder.pop_back();
    files.run_folders.push_back(files.first_folder);
    for (int n = 1;; ++n) {
        auto const generation = generation_folder(files.first_folder, n);
        if (!is_folder(generation)) break;
        files.run_names[generation] = fmt::format("g{}", n);
        files.run_folders.push_back(generation);
    }
    return files;
}

std::vector<std::string> job_numbers(std::vector<std::string> const& words, std::string_view command,
                                     environment const& variables) {
    if (words.empty())
        throw_error(errc::usage, "the number of a job is missing; write: muster {} ID (muster jobs --all lists yours)", command);
    for (auto const& word : words)
        if (is_run_folder(word))
            throw_error(errc::usage,
                        "'{0}' is the folder of a run, and {1} takes the numbers of jobs; muster show {0} and muster logs {0} "
                        "tell of that run",
                        without_controls(word), command);
        else if (!is_job_number(word) && !is_sluid(word))
            throw_error(errc::usage, "'{}' is no number of a job; muster jobs lists yours", without_controls(word));
    std::vector<std::string> numbers;
    for (auto const& word : words) numbers.push_back(plain_job_number(word, variables));
    return numbers;
}

/// Returns "RUNNING" or, for an array, "2 RUNNING (114_0, 114_2), 1 CANCELLED (114_1)", with the first few of many tasks. Pure.
std::string list_states(std::vector<queued_job> const& jobs) {
    constexpr std::size_t most_named = 4;
    if (jobs.size() == 1) return jobs.front().state;
    std::vector<std::pair<std::string, std::vector<std::string>>> states;
    for (auto const& job : jobs) {
        auto found = std::ranges::find(states, job.state, [](auto const& one) { return one.first; });
        if (found == states.end()) found = states.insert(states.end(), {job.state, {}});
        found->second.push_back(job.id);
    }
    std::string text;
    for (auto const& [state, ids] : states) {
        auto const named = std::min(ids.size(), most_named);
        text += fmt::format("{}{} {} ({}{})", text.empty() ? "" : ", ", ids.size(), state,
                            join(std::span(ids).first(named), ", "), named < ids.size() ? ", …" : "");
    }
    return text;
}

int cancel_command(std::vector<std::string> const& args, environment const& variables) {
    auto const given = resolve_settings("cancel", options_first("cancel", args), real_settings(variables));
    if (print_help_if_asked("cancel", given)) return 0;
    auto const ids = job_numbers(given.command, "cancel", variables);
    auto const kind = find_queue(variables);
    auto const jobs = list_jobs(kind, ids, variables);
    int code = 0;
    for (auto const& id : ids) {
        std::string number = id;
        bool goes_on = false;
        std::vector<queued_job> meant;
        for (auto const& job : jobs) {
            if (!is_meant(job, id)) continue;
            meant.push_back(job);
            goes_on = goes_on || job.phase != job_phase::ended;
            if (kind == queue_kind::pbs && job.id.find('[') != std::string::npos) number = as_pbs_array(id);
        }
        auto const was = list_states(meant);
        if (!goes_on) {
            print_error("muster", fmt::format("job {}: {}", id,
                                              was.empty() ? "the scheduler does not know it (any more); muster jobs lists yours"
                                                          : fmt::format("it has ended already ({})", was)));
            code = 1;
            continue;
        }
        auto const answer = run_captured(cancel_words(kind, number), without_slurm_views(variables));
        if (answer.exit_status == 0) {
            fmt::print("job {} cancelled; it was {}\n", id, without_controls(was));
        } else {
            print_error("muster", fmt::format("job {} ({}): {}", id, was, without_controls(trim(answer.err))));
            code = 1;
        }
    }
    return code;
}

}  // namespace muster
