// muster doctor.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

struct finding {
    enum class state { ok, note, missing };
    state how;
    std::string what;
    std::string detail;
    std::string advice;  ///< what to do about it; empty if nothing
    bool operator==(finding const&) const = default;
};

/// Looks at what muster and the programs under it need on this machine. Starts nothing but `mpirun --version` and its like.
std::vector<finding> examine(environment const& variables);

/// Prints the findings; exit code 0, or 1 if something is missing without which ranks cannot run here.
int doctor_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
