// Finds the MPI library that a program is linked to, which decides how its ranks can connect.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Returns true for the file name of an MPI library: libmpi.so.40 (Open MPI), libmpich.so.12 and libmpi.so.12 (the MPICH family),
/// libmpi_cray.so.12 …
bool is_mpi_library(std::string_view file_name) noexcept;

/// Returns the MPI library that an executable file is linked to, directly or through other libraries ("libmpi.so.40"), or
/// nothing: it is not an ELF program, not linked, or linked only at run time (mpi4py): see look_for_mpi. Searches libraries where
/// the dynamic loader would without LD_LIBRARY_PATH, then in `library_path`. Reads files, follows at most 512 libraries, and none
/// through libtorch, which needs MPI only to communicate by it. Never throws, whatever the file.
std::optional<std::string> links_mpi(std::string const& executable, std::vector<std::string> const& library_path = {});

}  // namespace muster
