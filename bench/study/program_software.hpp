// The software of a studied program: its name; asks its interpreter and the machine for versions, and GPUs for their clocks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Name and version. Of a Python program: "python", and of the packages that are installed for its interpreter torch, numpy, mpi4py,
/// horovod, tensorflow, jax and jaxlib, without importing one. "mpirun" where it is in PATH; "gpu 0" … with name and clocks where
/// nvidia-smi tells. Takes about a tenth of a second; what does not answer in two is left out.
std::vector<std::pair<std::string, std::string>> software_of(std::vector<std::string> const& program,
                                                             environment const& variables);

/// What a program is called: its file name; of an interpreter its first argument that is no option, "train.py" of "python3 -u train.py". Pure.
std::string program_name(std::vector<std::string> const& program);

/// The lines "NAME<tab>VERSION" of a text. Pure.
std::vector<std::pair<std::string, std::string>> read_versions(std::string_view text);

}  // namespace muster
