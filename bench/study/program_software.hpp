// The software of a studied program: its name; asks its interpreter and the machine for versions, and GPUs for their clocks.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Name and version. Of a Python program: "python", and of the packages that are installed for its interpreter torch, numpy, mpi4py,
/// horovod, tensorflow, jax and jaxlib, without importing one. "mpirun" where it is in PATH; "gpu 0" … with name and clocks where
/// nvidia-smi tells; and digests_of(program). Takes about a tenth of a second; what does not answer in two is left out.
std::vector<std::pair<std::string, std::string>> software_of(std::vector<std::string> const& program,
                                                             environment const& variables);

/// Name and "sha256 …" of the programs and scripts that a command line names by their path: by these a study knows that its program was edited.
std::vector<std::pair<std::string, std::string>> digests_of(std::vector<std::string> const& program);

/// Whether a version is that of a file, as digests_of has it. Pure.
bool is_digest(std::string_view version) noexcept;

/// The files whose digests differ, a line each, which begins with a line break; "" where none does. Pure.
std::string changed_files(std::vector<std::pair<std::string, std::string>> const& begun,
                          std::vector<std::pair<std::string, std::string>> const& now);

/// What a program is called: its file name; of an interpreter its first argument that is no option, "train.py" of "python3 -u train.py". Pure.
std::string program_name(std::vector<std::string> const& program);

/// The lines "NAME<tab>VERSION" of a text. Pure.
std::vector<std::pair<std::string, std::string>> read_versions(std::string_view text);

}  // namespace muster
