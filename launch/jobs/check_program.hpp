// Checks, before a job is queued, that its program, an interpreter's script and a container's image exist.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Returns the argument that certainly names the file which an interpreter (python3, bash, …) reads: the first word after options
/// without values. Returns "" if the program is no interpreter, and if no argument is certain (bash -lc LINE, julia -t 4 FILE,
/// python3 -m PACKAGE). Pure.
std::string script_argument(std::vector<std::string> const& command);

/// Says where the job will look for its files.
struct program_place {
    std::string working_dir;     ///< the ranks' folder, absolute or relative to this process' folder; empty: the latter
    bool loads_more = false;     ///< modules, an environment or shell lines come first, and may bring a program without a slash
    bool changes_files = false;  ///< the user's shell lines come first, and may make scripts
    std::vector<std::string> staged_folders;  ///< folders on the nodes, whose files cannot be seen here
};

/// Throws errc::usage for a program or a script that certainly does not exist.
void check_program(std::vector<std::string> const& command, environment const& variables, program_place const& where);

/// Does the same for a container's image if its name is a file's: neither docker://NAME nor a registry's NAME:TAG.
void check_image(std::string const& image, program_place const& where);

/// Does the same for a Python environment that the job's script activates.
void check_venv(std::string const& venv, program_place const& where);

}  // namespace muster
