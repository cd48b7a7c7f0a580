// `muster jobs`: the user's own jobs, from one question to the scheduler.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/command/command_set.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "base/text_table.hpp"
#include "launch/commands/commands.hpp"
#include "launch/help/help.hpp"
#include "launch/jobs/job_commands.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/jobs/queue/ask_scheduler.hpp"
#include "launch/jobs/queue/queued_job.hpp"
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
    return job.phase == job_phase::ended ? or_dash(job.reason) : "-";
}

std::string table_of(std::vector<queued_job> const& jobs, std::size_t width) {
    text_table table({"job", "name", "state", "nodes", "time", "limit", "why"});
    for (auto const& job : jobs)
        table.add({or_dash(job.id), or_dash(job.name), or_dash(job.state), or_dash(job.nodes), or_dash(job.used),
                   or_dash(job.limit), reason_shown(job)});
    return table.text(width);
}

}  // namespace

ordered_json json_of(queued_job const& job) {
    ordered_json row{{"id", job.id},     {"name", job.name},   {"state", job.state}, {"nodes", job.nodes},
                     {"time", job.used}, {"limit", job.limit}, {"start", job.start}, {"reason", job.reason}};
    row["phase"] = job.phase == job_phase::waiting ? "waiting" : job.phase == job_phase::running ? "running" : "ended";
    row["why"] = job.phase == job_phase::waiting ? ordered_json(explain_wait(job)) : ordered_json();
    row["exit_code"] = job.status ? ordered_json(*job.status) : ordered_json();
    return row;
}

int jobs_command(std::vector<std::string> const& args, environment const& variables) {
    auto const given = resolve_settings("jobs", options_first("jobs", args), real_settings(variables));
    if (print_help_if_asked("jobs", given)) return 0;
    if (!given.command.empty())
        throw error(errc::usage, fmt::format("muster jobs takes no argument '{}'; muster show {} tells of one job",
                                             given.command.front(), given.command.front()));
    auto const kind = find_queue(variables);
    auto const jobs = list_jobs(kind, {}, variables);
    if (given.flag("json")) {
        auto rows = ordered_json::array();
        for (auto const& job : jobs) rows.push_back(json_of(job));
        fmt::print("{}\n", ordered_json{{"schema", "muster.jobs/1"}, {"scheduler", to_string(kind)}, {"jobs", rows}}.dump(
                               2, ' ', false, ordered_json::error_handler_t::replace));
        return 0;
    }
    fmt::print("{}", table_of(jobs, terminal_width(variables)));
    if (jobs.empty()) fmt::print(stderr, "muster: note: no job of yours waits or runs\n");
    return 0;
}

std::vector<std::string> job_numbers(std::vector<std::string> const& words, std::string_view command) {
    if (words.empty())
        throw error(errc::usage,
                    fmt::format("the number of a job is missing; write: muster {} ID (muster jobs lists yours)", command));
    std::error_code ignored;
    for (auto const& word : words)
        if (!is_job_number(word) && std::filesystem::exists(word + "/run.json", ignored))
            throw error(errc::usage, fmt::format("'{0}' is the folder of a run, and {1} takes the numbers of jobs; read "
                                                 "{0}/run.json, and what the ranks wrote in {0}",
                                                 without_controls(word), command));
        else if (!is_job_number(word))
            throw error(errc::usage, fmt::format("'{}' is no number of a job; muster jobs lists yours", without_controls(word)));
    std::vector<std::string> numbers;
    for (auto const& word : words) numbers.push_back(plain_flux_id(word));
    return numbers;
}

int cancel_command(std::vector<std::string> const& args, environment const& variables) {
    auto const given = resolve_settings("cancel", options_first("cancel", args), real_settings(variables));
    if (print_help_if_asked("cancel", given)) return 0;
    auto const ids = job_numbers(given.command, "cancel");
    auto const kind = find_queue(variables);
    auto const jobs = list_jobs(kind, ids, variables);
    int code = 0;
    for (auto const& id : ids) {
        std::string was, number = id;
        bool goes_on = false;
        for (auto const& job : jobs) {
            if (!is_meant(job, id)) continue;
            was += fmt::format("{}{}", was.empty() ? "" : ", ", job.state);
            goes_on = goes_on || job.phase != job_phase::ended;
            if (kind == queue_kind::pbs && job.id.find('[') != std::string::npos) number = as_pbs_array(id);
        }
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
