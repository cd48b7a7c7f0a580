// muster doctor.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/settings/run_options.hpp"

namespace muster {

struct finding {
    enum class state { ok, note, missing };
    state how;
    std::string what;
    std::string detail;
    std::string advice;  ///< what to do about it; empty if nothing
    bool operator==(finding const&) const = default;
};

/// Looks at what muster and the programs under it need on this machine, at the job and at what can start ranks on its nodes.
/// Starts nothing but `mpirun --version` and its like.
std::vector<finding> examine(run_options const& options, environment const& variables);

/// Prints the findings, with --allocation those of every node too; exit code 0, or 1 if something is missing without which ranks
/// cannot run here, or a node is unfit for them.
int doctor_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
