// Checks, before a job is queued, that its program, the script that an interpreter is to read, and a container's image are there.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// The argument that is certainly the file which an interpreter (python3, bash, …) reads: the first word, after options that take no
/// value. "" if the program is no interpreter, and if that is not certain (bash -lc LINE, julia -t 4 FILE, python3 -m PACKAGE). Pure.
std::string script_argument(std::vector<std::string> const& command);

/// Where the job will look for its files.
struct program_place {
    std::string working_dir;     ///< of the ranks, absolute or from this process' own; empty: this process' own
    bool loads_more = false;     ///< modules, an environment or shell lines come first: a program without a slash may be theirs
    bool changes_files = false;  ///< shell lines of the user's come first: scripts may come by them
    std::vector<std::string> staged_folders;  ///< on the nodes: what lies in them is not here
};

/// Throws errc::usage for a program or a script that is certainly not there.
void check_program(std::vector<std::string> const& command, environment const& variables, program_place const& where);

/// The same for the image of a container, where its name is a file's: not docker://NAME, nor a registry's NAME:TAG.
void check_image(std::string const& image, program_place const& where);

/// The same for a Python environment that the job's script activates.
void check_venv(std::string const& venv, program_place const& where);

}  // namespace muster
