#include "launch/jobs/queue/ask_scheduler.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/process/process.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/jobs/queue/flux_jobs.hpp"
#include "launch/scheduler/commands/slurm_commands.hpp"
#include "launch/scheduler/flux.hpp"
#include "launch/scheduler/read_allocation.hpp"
#include "launch/scheduler/slurm/slurm_job.hpp"
#include "launch/system/home_folder.hpp"

namespace muster {

namespace {

constexpr std::chrono::milliseconds answer_limit{60'000};

/// -x also lists jobs that have ended. A server that keeps no history of them then lists no jobs at all.
bool keeps_no_history(std::string_view said) noexcept {
    return said.find("not configured to maintain job history") != std::string_view::npos;
}

/// For a number that is not known (any more), Slurm and PBS end with an error, and Flux says so on stderr; the question itself
/// has not failed.
bool is_unknown_job(std::string_view said) noexcept {
    return said.find("Invalid job id") != std::string_view::npos || said.find("Unknown Job") != std::string_view::npos ||
           said.find("has finished") != std::string_view::npos ||
           (said.starts_with("JobID ") && said.find(" unknown") != std::string_view::npos);
}

}  // namespace

std::string_view to_string(queue_kind kind) noexcept {
    switch (kind) {
        case queue_kind::slurm: return "slurm";
        case queue_kind::pbs: return "pbs";
        case queue_kind::flux: return "flux";
    }
    return "unknown";
}

std::optional<queue_kind> find_queue_or_nothing(environment const& variables) {
    bool const slurm = !find_program_or_nothing(slurm_program(slurm_ask::jobs_of_user), variables).empty();
    bool const pbs = !find_program_or_nothing("qstat", variables).empty();
    bool const flux = !find_program_or_nothing("flux", variables).empty();
    if (flux && prefers_flux(variables)) return queue_kind::flux;
    if (pbs && (!slurm || prefers_pbs(variables))) return queue_kind::pbs;
    if (slurm) return queue_kind::slurm;
    return flux ? std::optional(queue_kind::flux) : std::nullopt;
}

queue_kind find_queue(environment const& variables) {
    if (auto const found = find_queue_or_nothing(variables)) return *found;
    throw error(
        errc::unavailable,
        "neither squeue nor qstat nor flux is on PATH, so there is no scheduler to ask; do this on a login node of the cluster");
}

std::string find_cluster(environment const& variables) {
    if (find_program_or_nothing(slurm_program(slurm_ask::config), variables).empty()) return {};
    static std::optional<std::pair<environment, std::string>> known;  // a command asks once for all of its jobs
    if (known && known->first == variables) return known->second;
    auto const answer = run_captured(slurm_words(slurm_ask::config), without_slurm_views(variables), answer_limit);
    if (answer.exit_status != 0) return {};
    auto name = slurm_cluster_name(answer.out);
    if (!is_file_name(name)) name.clear();
    return known.emplace(variables, std::move(name)).second;
}

std::vector<std::string> list_words(queue_kind kind, std::vector<std::string> const& ids, std::string const& user) {
    if (kind == queue_kind::slurm)
        return ids.empty() ? slurm_words(slurm_ask::jobs_of_user, {user, squeue_format})
                           : slurm_words(slurm_ask::jobs_by_number, {join(ids, ","), squeue_format});
    std::vector<std::string> words;
    if (kind == queue_kind::flux) {  // without an id, the user's own jobs; with one, its job in any state
        words = {"flux", "jobs", "--no-header", fmt::format("--format={}", flux_jobs_format)};
        words.insert(words.end(), ids.begin(), ids.end());
        return words;
    }
    words = {"qstat", "-f", "-F", "dsv"};
    if (ids.empty()) return words;  // of all users: qstat selects by user only if it prints a table
    words.insert(words.begin() + 1, {"-x", "-t"});
    words.insert(words.end(), ids.begin(), ids.end());
    return words;
}

namespace {

/// Returns the numbers that PBS did not find, with brackets: it does not know an array without them.
std::vector<std::string> perhaps_arrays(std::vector<std::string> const& ids, std::vector<queued_job> const& found) {
    std::vector<std::string> arrays;
    for (auto const& id : ids)
        if (id.find('[') == std::string::npos &&
            std::ranges::none_of(found, [&](queued_job const& job) { return is_meant(job, id); }))
            arrays.push_back(as_pbs_array(id));
    return arrays;
}

std::vector<queued_job> ask(queue_kind kind, std::vector<std::string> const& ids, std::string const& user,
                            environment const& variables) {
    auto words = list_words(kind, ids, user);
    auto answer = run_captured(words, variables, answer_limit);
    if (kind == queue_kind::pbs && keeps_no_history(answer.err)) {
        std::erase(words, "-x");
        answer = run_captured(words, variables, answer_limit);
    }
    bool const unknown = is_unknown_job(answer.err);
    if (answer.exit_status != 0 && !unknown)
        throw_error(errc::unavailable, "{} failed (code {}): {}; try again, or ask the site", shell_join(words),
                    answer.exit_status, without_controls(trim(answer.err.empty() ? answer.out : answer.err)));
    if (kind == queue_kind::flux) return parse_flux_jobs(answer.out);
    return kind == queue_kind::slurm ? parse_squeue(answer.out) : parse_qstat(answer.out);
}

}  // namespace

std::vector<queued_job> list_jobs(queue_kind kind, std::vector<std::string> const& ids, environment const& all_variables) {
    auto const variables = kind == queue_kind::slurm ? without_slurm_views(all_variables) : all_variables;
    auto const user = name_of_user(::geteuid());
    auto jobs = ask(kind, ids, user, variables);
    if (kind == queue_kind::pbs)
        if (auto const arrays = perhaps_arrays(ids, jobs); !arrays.empty()) try {
                for (auto& job : ask(kind, arrays, user, variables)) jobs.push_back(std::move(job));
            } catch (error const&) {  // it is no array either
            }
    if (kind == queue_kind::pbs && !ids.empty()) jobs = without_begun_arrays(std::move(jobs));
    if (kind == queue_kind::pbs && ids.empty())
        std::erase_if(jobs, [&](queued_job const& job) { return job.owner.substr(0, job.owner.find('@')) != user; });
    sort_tasks(jobs);
    return jobs;
}

std::string plain_job_number(std::string const& id, environment const& variables) {
    if (!is_sluid(id)) return plain_flux_id(id);
    auto const known = slurm_words(slurm_ask::job_record, {id});
    auto const answer = find_program_or_nothing(known.front(), variables).empty()
                            ? command_output{}
                            : run_captured(known, without_slurm_views(variables), answer_limit);
    if (auto number = number_of_sluid(answer.out, id)) return *number;
    throw_error(errc::not_found,
                "{} has the form of a SLUID of Slurm (26.05 and later), and no job here has it (any more); give the job's "
                "number, as muster jobs --all lists it",
                id);
}

std::vector<std::string> cancel_words(queue_kind kind, std::string const& id) {
    if (kind == queue_kind::flux) return {"flux", "cancel", id};
    return kind == queue_kind::slurm ? slurm_words(slurm_ask::cancel, {id}) : std::vector<std::string>{"qdel", id};
}

std::string describe_job(queue_kind kind, std::string const& id, environment const& variables) {
    if (kind == queue_kind::flux) {
        auto const events = run_captured({"flux", "job", "eventlog", id}, variables, answer_limit);
        return events.exit_status == 0 ? events.out : std::string();
    }
    auto answer = kind == queue_kind::slurm ? run_captured(slurm_words(slurm_ask::job_for_people, {id}), variables, answer_limit)
                                            : run_captured({"qstat", "-x", "-f", id}, variables, answer_limit);
    if (keeps_no_history(answer.err)) answer = run_captured({"qstat", "-f", id}, variables, answer_limit);
    return answer.exit_status == 0 ? answer.out : std::string();
}

}  // namespace muster
