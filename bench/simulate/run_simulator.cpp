#include "bench/simulate/run_simulator.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/process/run_captured.hpp"
#include "base/process/this_process.hpp"
#include "bench/tools/checked_json.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

/// Beside this program in a build tree, in libexec/muster where it is installed.
fs::path simulator() {
    auto const here = self_program().parent_path();
    for (auto const& path : {here / "muster-simulate", here / "../libexec/muster/muster-simulate"})
        if (fs::exists(path)) return path;
    throw error(errc::unavailable,
                fmt::format("the simulator is not there ({}): it is built where SimGrid is; install libsimgrid-dev (3.32 or "
                            "later) and build muster again",
                            (here / "muster-simulate").string()));
}

}  // namespace

simulation_result run_simulator(simulation_job const& job, environment const& variables) {
    auto const program = simulator().string();
    auto const input = to_json(job).dump();
    auto how = foreground();
    how.input = input;
    auto const output = run_program({program}, variables, how);
    if (output.exit_status != 0)
        throw error(errc::peer_failed, fmt::format("{} ended with exit code {} at {} ranks on {}; its messages are above",
                                                   program, output.exit_status, job.ranks, job.platform.name));
    return read_result(parse_json(output.out, "what the simulator printed"));
}

}  // namespace muster
