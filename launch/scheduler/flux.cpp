// A Flux instance (flux batch, flux alloc) or a job in one. Read as documented; no Flux has been tried.
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/scheduler/flux_resources.hpp"
#include "launch/scheduler/scheduler_rows.hpp"

namespace muster {

std::optional<std::string> flux_unavailable(scheduler_sources const& sources, allocation_choice const&) {
    if (sources.variables.has("FLUX_URI")) return std::nullopt;
    return "FLUX_URI is not set";
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
    return {scheduler_kind::flux, job ? *job : sources.variables.get_or("FLUX_ENCLOSING_ID", ""), std::move(resources.nodes),
            resources.ends_at, true};
}

}  // namespace muster
