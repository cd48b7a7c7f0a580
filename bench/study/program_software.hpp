// The software of a studied program: its name, the versions of its interpreter and the machine, and the clocks of GPUs.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Returns name and version. For a Python program: "python", and of the packages installed for its interpreter torch, numpy, mpi4py,
/// horovod, tensorflow, jax and jaxlib, without importing them. "mpirun" if it is in PATH; "gpu 0" … with name and clocks if
/// nvidia-smi shows them; and digests_of(program). Takes about a tenth of a second; leaves out what does not answer in two.
std::vector<std::pair<std::string, std::string>> software_of(std::vector<std::string> const& program,
                                                             environment const& variables);

/// Returns name and "sha256 …" of the programs and scripts that a command line names by their path: they show a study that its program was
/// edited.
std::vector<std::pair<std::string, std::string>> digests_of(std::vector<std::string> const& program);

/// Returns whether a version is that of a file, as digests_of has it. Pure.
bool is_digest(std::string_view version) noexcept;

/// Returns the files whose digests differ, a line each, which begins with a line break; "" if all are equal. Pure.
std::string changed_files(std::vector<std::pair<std::string, std::string>> const& begun,
                          std::vector<std::pair<std::string, std::string>> const& now);

/// Returns a program's name: its file name; for an interpreter its first argument that is not an option, "train.py" of "python3 -u train.py".
/// Pure.
std::string program_name(std::vector<std::string> const& program);

/// Reads the lines "NAME<tab>VERSION" of a text. Pure.
std::vector<std::pair<std::string, std::string>> read_versions(std::string_view text);

}  // namespace muster
