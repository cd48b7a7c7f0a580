#include "launch/jobs/queue/flux_jobs.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "launch/scheduler/flux.hpp"

namespace muster {

namespace {

constexpr char divider = '\x1f';
constexpr std::size_t fields_of_job = 15;
constexpr std::string_view held = "urgency=0", depends = "depend=", begins = "begin=";

/// Returns "" for 0:00:00, the limit of a job without a limit.
std::string unless_zero(std::string_view time) {
    return time == "0:00:00" ? std::string() : std::string(time);
}

/// Returns "after-success=f7,begin-time=…": the kinds of RFC 26, as `flux jobs` writes them; its numbers may begin with ƒ.
std::string plain_dependencies(std::string_view text) {
    std::vector<std::string> all;
    for (auto const one : split(text, ',')) {
        auto const equals = one.find('=');
        all.push_back(equals == std::string_view::npos
                          ? std::string(one)
                          : std::string(one.substr(0, equals + 1)) + plain_flux_id(one.substr(equals + 1)));
    }
    return join(all, ",");
}

std::string wait_reason(std::string_view state, std::string_view urgency, std::string_view dependencies,
                        std::string_view scheduler) {
    if (state == "DEPEND")
        return dependencies.starts_with("begin") ? std::string(begins) + std::string(dependencies)
                                                 : std::string(depends) + plain_dependencies(dependencies);
    if (urgency == "0") return std::string(held);
    return std::string(trim(scheduler));
}

/// Returns what ended a job from outside, and how; the exit code tells that its own program failed.
std::string end_reason(std::string_view type, std::string_view note) {
    if (type.empty()) return {};
    return note.empty() ? std::string(type) : fmt::format("{}: {}", type, note);
}

queued_job read_job(std::vector<std::string_view> const& field) {
    auto const state = trim(field[1]), result = trim(field[2]);
    queued_job job;
    job.id = job.raw_id = plain_flux_id(trim(field[0]));
    job.name = trim(field[14]);
    job.nodes = trim(field[4]);
    job.limit = unless_zero(trim(field[6]));
    if (is_waiting_in_flux(state)) {
        job.state = state;
        job.phase = job_phase::waiting;
        job.reason = wait_reason(state, trim(field[9]), trim(field[12]), field[13]);
        job.start = trim(field[8]);
        return job;
    }
    job.used = trim(field[5]);
    job.start = trim(field[7]);
    if (state != "INACTIVE") {
        job.state = state;
        job.phase = job_phase::running;
        return job;
    }
    job.state = result;
    job.phase = job_phase::ended;
    job.reason = end_reason(trim(field[10]), trim(field[11]));
    // A job that was cancelled before it ran has -128.
    if (auto const code = parse_integer(trim(field[3])); code && *code >= 0 && *code <= 255) job.status = static_cast<int>(*code);
    return job;
}

}  // namespace

bool is_waiting_in_flux(std::string_view state) noexcept {
    return state == "NEW" || state == "DEPEND" || state == "PRIORITY" || state == "SCHED";
}

std::vector<queued_job> parse_flux_jobs(std::string_view printed) {
    std::vector<queued_job> jobs;
    for (auto const line : split(printed, '\n'))
        if (auto const fields = split(line, divider); fields.size() == fields_of_job && !trim(fields[0]).empty())
            jobs.push_back(read_job(fields));
    return jobs;
}

std::string explain_flux_wait(queued_job const& job) {
    std::string_view const reason = job.reason;
    if (reason == held) return fmt::format("it is held; release it by flux job urgency {} default", job.id);
    if (reason.starts_with(begins))
        return fmt::format("its earliest start time has not come ({})", without_controls(reason.substr(begins.size())));
    if (reason.starts_with(depends))
        return fmt::format("it waits for another job ({})", without_controls(reason.substr(depends.size())));
    if (!reason.empty()) return without_controls(reason);
    return job.state == "SCHED" ? "it waits until enough nodes are free" : "Flux is still looking at it";
}

}  // namespace muster
