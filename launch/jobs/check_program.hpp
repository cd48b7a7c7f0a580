// Checks, before a job is queued, that its program and the script that an interpreter is to read are there.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// The argument that names the file which an interpreter (python3, bash, …) reads; "" where the program is none, or reads no file
/// (python3 -m package, bash -c line). Pure.
std::string script_argument(std::vector<std::string> const& command);

/// Throws errc::usage for a program or a script that is not there. Where `loads_more` (the job loads modules or runs in a container), a
/// program without a slash may come from there: it is not looked for.
void check_program(std::vector<std::string> const& command, environment const& variables, bool loads_more);

}  // namespace muster
