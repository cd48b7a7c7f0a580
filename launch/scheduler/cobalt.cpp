// A job of Cobalt. Its node file names hosts, or single GPUs of them: "thetagpu07-gpu3".
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/scheduler/epoch.hpp"
#include "launch/scheduler/node_file.hpp"
#include "launch/scheduler/scheduler_rows.hpp"

namespace muster {

std::optional<std::string> cobalt_unavailable(scheduler_sources const& sources, allocation_choice const&) {
    if (sources.variables.has("COBALT_JOBID")) return std::nullopt;
    return "COBALT_JOBID is not set";
}

allocation read_cobalt(scheduler_sources const& sources, allocation_choice const&) {
    auto const job = sources.variables.get_or("COBALT_JOBID", "");
    auto const path = sources.variables.get("COBALT_NODEFILE");
    auto const text = path ? sources.read_file(*path) : std::nullopt;
    if (!text)
        throw error(
            errc::not_found,
            fmt::format("job {} (cobalt): COBALT_NODEFILE{} is not {}; start muster in the job's script or shell, or give -H",
                        job, path ? "=" + *path : "", path ? "there" : "set"));
    allocation given{scheduler_kind::cobalt, job, parse_node_file(*text, *path, true), std::nullopt, true};
    if (auto const end = parse_integer(sources.variables.get_or("COBALT_ENDTIME", ""))) given.ends_at = from_epoch(*end);
    return given;
}

}  // namespace muster
