// Reads jobs of PBS from `qstat -f -F dsv`. Its JSON contains only the first of several jobs (OpenPBS 23.06).
#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/jobs/queue/queued_job.hpp"

namespace muster {

namespace {

using attributes = std::map<std::string, std::string, std::less<>>;

constexpr std::string_view line_start = "Job Id: ";

/// Splits a line at '|'. A backslash escapes '|', a backslash, and n for a line break.
std::vector<std::string> fields_of(std::string_view line) {
    std::vector<std::string> fields(1);
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '|')
            fields.emplace_back();
        else if (line[i] == '\\' && i + 1 < line.size())
            fields.back() += line[++i] == 'n' ? '\n' : line[i];
        else
            fields.back() += line[i];
    }
    return fields;
}

attributes read_attributes(std::vector<std::string> const& fields) {
    attributes all;
    for (std::size_t i = 1; i < fields.size(); ++i)
        if (auto const equals = fields[i].find('='); equals != std::string::npos)
            all.try_emplace(fields[i].substr(0, equals), fields[i].substr(equals + 1));
    return all;
}

std::string text_at(attributes const& all, std::string_view name) {
    auto const found = all.find(name);
    return found == all.end() ? std::string() : found->second;
}

job_phase pbs_phase(std::string_view state) noexcept {
    if (state == "F" || state == "X" || state == "C" || state == "M") return job_phase::ended;
    return state == "R" || state == "E" || state == "B" || state == "S" || state == "U" ? job_phase::running : job_phase::waiting;
}

/// PBS adds 256 to a signal; negative numbers are its own reasons.
int pbs_code(std::int64_t exit_status) noexcept {
    if (exit_status == -29) return 124;
    if (exit_status < 0) return 125;
    return static_cast<int>(exit_status >= 256 ? 128 + (exit_status - 256) % 128 : exit_status % 256);
}

/// Returns "afterok:85.head@head": the jobs that it waits for, without those that wait for it.
std::string waits_for(std::string const& depend) {
    std::vector<std::string> waits;
    for (auto const part : split(depend, ','))
        if (part.starts_with("after") || part.starts_with("on:") || part.starts_with("runone")) waits.emplace_back(part);
    return join(waits, ",");
}

std::string wait_reason(attributes const& all) {
    auto const holds = text_at(all, "Hold_Types");
    auto const others = waits_for(text_at(all, "depend"));
    if (holds.find('s') != std::string::npos && !others.empty()) return "depend=" + others;
    if (text_at(all, "job_state") == "H" && !holds.empty()) return "Hold_Types=" + holds;
    if (text_at(all, "job_state") == "W") return "Execution_Time=" + text_at(all, "Execution_Time");
    auto comment = text_at(all, "comment");
    return comment.starts_with("Job Array Began") ? std::string() : comment;  // the array's, which its waiting tasks have too
}

/// PBS shows a task that has not begun, or that an old server has forgotten, with the array's attributes, exit status and times
/// included. Tasks that have run have array_id.
bool has_own_attributes(std::string_view id, attributes const& all) {
    return id.find('[') == std::string_view::npos || id.find("[]") != std::string_view::npos || all.contains("array_id");
}

queued_job read_pbs_job(std::string const& id, attributes const& all) {
    queued_job job{.id = id,
                   .raw_id = id,
                   .name = text_at(all, "Job_Name"),
                   .state = text_at(all, "job_state"),
                   .phase = pbs_phase(text_at(all, "job_state")),
                   .reason = text_at(all, "comment"),
                   .nodes = text_at(all, "Resource_List.nodect"),
                   .used = text_at(all, "resources_used.walltime"),
                   .limit = text_at(all, "Resource_List.walltime"),
                   .owner = text_at(all, "Job_Owner")};
    bool const own = has_own_attributes(id, all);
    if (job.phase == job_phase::waiting) {
        job.reason = wait_reason(all);
        job.start = text_at(all, "estimated.start_time");
    } else if (own) {
        job.start = text_at(all, "stime");
    }
    if (job.phase != job_phase::ended) return job;
    auto const status = own ? parse_integer(text_at(all, "Exit_status")) : std::nullopt;
    if (status) {
        job.status = pbs_code(*status);
    } else if (text_at(all, "substate") == "91" || (job.state == "F" && job.start.empty() && own)) {
        job.status = 143;
        auto const others = waits_for(text_at(all, "depend"));
        job.reason = "deleted before it ran";
        if (!others.empty()) job.reason += ", perhaps because of the job that it waited for: " + others;
    }
    return job;
}

}  // namespace

std::string pbs_array_of(std::string const& id) {
    auto const open = id.find('['), close = id.find(']');
    if (open == std::string::npos || close == std::string::npos || close < open) return id;
    return id.substr(0, open + 1) + id.substr(close);
}

std::string as_pbs_array(std::string const& id) {
    if (id.find('[') != std::string::npos) return id;
    auto const server = std::min(id.find('.'), id.size());
    return id.substr(0, server) + "[]" + id.substr(server);
}

std::vector<queued_job> parse_qstat(std::string_view printed) {
    std::vector<queued_job> jobs;
    for (auto const line : split(printed, '\n')) {
        if (!line.starts_with(line_start)) continue;
        auto const fields = fields_of(line.substr(line_start.size()));
        auto id = without_controls(trim(fields.front()));
        if (!id.empty()) jobs.push_back(read_pbs_job(id, read_attributes(fields)));
    }
    if (jobs.empty() && !trim(printed).empty())
        throw parse_error("qstat -F dsv", printed.substr(0, 200), 0, "no line of this begins with 'Job Id: '");
    return jobs;
}

std::vector<queued_job> without_begun_arrays(std::vector<queued_job> jobs) {
    std::vector<std::string> arrays;
    for (auto const& job : jobs)
        if (auto array = pbs_array_of(job.id); array != job.id) arrays.push_back(std::move(array));
    std::erase_if(jobs, [&](queued_job const& job) { return std::ranges::find(arrays, job.id) != arrays.end(); });
    return jobs;
}

}  // namespace muster
