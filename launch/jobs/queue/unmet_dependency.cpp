#include "launch/jobs/queue/unmet_dependency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/jobs/queue/ask_scheduler.hpp"

namespace muster {

namespace {

std::string cannot_come_true(script_request const& request) {
    return fmt::format("; so --after {}:{} cannot come true: leave it out, or name another job", request.after_kind,
                       join(request.after, ","));
}

/// Says how a job, or a task of an array, has ended; no code: it has not ended, or its end is not known.
struct part_end {
    std::optional<int> code;
    std::string text;
};

/// Returns the part for which --after KIND cannot come true: `ok` needs every task to succeed, `notok` at least one to fail.
part_end const* find_unwanted(std::string const& kind, std::vector<part_end> const& parts) {
    auto const failed = std::ranges::find_if(parts, [](auto const& part) { return part.code.value_or(0) != 0; });
    if (kind == "ok") return failed == parts.end() ? nullptr : &*failed;
    bool const all_well = std::ranges::all_of(parts, [](auto const& part) { return part.code == 0; });
    return kind == "notok" && all_well && !parts.empty() ? &parts.front() : nullptr;
}

std::vector<part_end> known_parts(std::string const& id, std::vector<queued_job> const& known) {
    std::vector<part_end> parts;
    for (auto const& job : known) {
        if (!is_meant(job, id)) continue;
        auto const code = job.phase == job_phase::ended ? std::optional(watch_code(job)) : std::nullopt;
        parts.push_back({code, fmt::format("job {} has ended: {}{}", job.id, job.state,
                                           job.status ? fmt::format(", exit code {}", *job.status) : "")});
    }
    return parts;
}

/// Returns the parts of a job that muster has submitted, from the records of its runs.
std::vector<part_end> recorded_parts(std::string const& id, job_record const& record) {
    auto tasks = list_tasks(id, record);
    if (tasks.empty()) tasks.push_back({id, id});
    std::vector<part_end> parts;
    for (auto const& task : tasks) {
        auto const files = find_job_files(task.raw, record);
        auto const exit = last_run_exit(files);
        if (!exit && had_nothing_to_do(files))
            parts.push_back({0, fmt::format("job {} had nothing left to do, as {} says", task.shown, files.output)});
        else
            parts.push_back({exit, exit ? fmt::format("job {} has ended with exit code {}, as {}/run.json says", task.shown,
                                                      *exit, files.run_folders.back())
                                        : std::string()});
    }
    return parts;
}

std::optional<std::vector<queued_job>> ask_about(script_request const& request, environment const& variables) try {
    return list_jobs(find_queue(variables), request.after, variables);
} catch (error const&) {
    return std::nullopt;
}

}  // namespace

void check_forgotten_jobs(script_request const& request, environment const& variables) {
    if (request.after.empty() || request.after_kind == "any") return;
    auto const known = ask_about(request, variables);
    if (!known) return;
    for (auto const& id : request.after) {
        if (!known_parts(id, *known).empty()) continue;
        auto const record = find_job_record(id, variables);
        auto const parts = record ? recorded_parts(id, *record) : std::vector<part_end>();
        if (auto const* part = find_unwanted(request.after_kind, parts))
            throw error(errc::usage, part->text + cannot_come_true(request));
        bool const all_tell = std::ranges::all_of(parts, [](auto const& part) { return part.code.has_value(); });
        if ((parts.empty() || !all_tell) && request.kind == script_kind::slurm)
            fmt::print(
                stderr,
                "muster: note: the scheduler does not know job {} (any more){}; Slurm 22.05 takes it as one that has ended as "
                "--after {} wants\n",
                id, record ? ", and no run of it has left an exit code" : "", request.after_kind);
    }
}

std::string unmet_dependency(script_request const& request, environment const& variables) {
    if (request.after.empty()) return {};
    auto const known = ask_about(request, variables);
    if (!known) return {};
    std::string text;
    for (auto const& id : request.after) {
        auto const parts = known_parts(id, *known);
        if (parts.empty())
            text += fmt::format("; the scheduler does not know job {} (any more)", id);
        else if (auto const* part = find_unwanted(request.after_kind, parts))
            text += "; " + part->text;
    }
    return text.empty() ? text : text + cannot_come_true(request);
}

}  // namespace muster
