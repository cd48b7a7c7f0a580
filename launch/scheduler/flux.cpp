// A Flux instance (flux batch, flux alloc, flux start) or a job in one. Read from R, which the instance itself or its parent has.
#include <fmt/format.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/scheduler/flux_resources.hpp"
#include "launch/scheduler/scheduler_rows.hpp"

namespace muster {

namespace {

/// The user that the instance belongs to; nothing where Flux does not answer.
std::optional<std::int64_t> instance_owner(scheduler_sources const& sources) {
    auto const answer = sources.run_command({"flux", "getattr", "security.owner"});
    return answer.exit_status == 0 ? parse_integer(trim(answer.out)) : std::nullopt;
}

/// The number that this instance has as a job of its parent; empty where it has none. FLUX_ENCLOSING_ID is younger than flux-core 0.63.
std::string job_of_instance(scheduler_sources const& sources) {
    if (auto const id = sources.variables.get("FLUX_ENCLOSING_ID")) return std::string(*id);
    auto const level = sources.run_command({"flux", "getattr", "instance-level"});
    if (level.exit_status != 0 || trim(level.out) == "0") return {};
    auto const id = sources.run_command({"flux", "getattr", "jobid"});
    return id.exit_status == 0 ? std::string(trim(id.out)) : std::string();
}

/// The parent's word on the end of such a job: before flux-core 0.63 and in it an instance does not know when its own time is up.
std::optional<std::chrono::system_clock::time_point> end_in_parent(scheduler_sources const& sources, std::string const& id) {
    std::vector<std::string> const question{"flux", "--parent", "job", "info", id, "R"};
    auto const answer = sources.run_command(question);
    if (answer.exit_status != 0) return std::nullopt;
    try {
        return parse_flux_resources(answer.out, join(question, " ")).ends_at;
    } catch (parse_error const&) {
        return std::nullopt;
    }
}

}  // namespace

/// A shell that `flux proxy` has opened has FLUX_URI too, and that of a system instance is no job: its nodes are everybody's.
std::optional<std::string> flux_unavailable(scheduler_sources const& sources, allocation_choice const&) {
    if (!sources.variables.has("FLUX_URI")) return "FLUX_URI is not set";
    if (sources.variables.has("FLUX_JOB_ID") || sources.variables.has("FLUX_ENCLOSING_ID")) return std::nullopt;
    auto const owner = instance_owner(sources);
    if (!owner || *owner == static_cast<std::int64_t>(::geteuid())) return std::nullopt;
    return fmt::format("FLUX_URI leads to a whole instance, which belongs to user {}; this is no job in it", *owner);
}

allocation read_flux(scheduler_sources const& sources, allocation_choice const&) {
    auto const job = sources.variables.get("FLUX_JOB_ID");  // a task of a job; else the script that owns the whole instance
    std::vector<std::string> command{"flux", "resource", "R"};
    if (job) command = {"flux", "job", "info", *job, "R"};
    auto const answer = sources.run_command(command);
    if (answer.exit_status != 0)
        throw error(errc::unavailable, fmt::format("{} failed ({}): {}; load Flux's commands, or give -H", join(command, " "),
                                                   answer.exit_status, trim(answer.err)));
    auto resources = parse_flux_resources(answer.out, join(command, " "));
    auto const id = plain_flux_id(job ? std::string(*job) : job_of_instance(sources));
    if (!job && !id.empty() && !resources.ends_at) resources.ends_at = end_in_parent(sources, id);
    return {scheduler_kind::flux, id, std::move(resources.nodes), resources.ends_at, true};
}

}  // namespace muster
