// Finds the MPI library that a program uses, so that a rank that came up alone in a larger world can be named.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// True for the file name of an MPI library: libmpi.so.40 (Open MPI), libmpich.so.12 and libmpi.so.12 (the MPICH family),
/// libmpi_cray.so.12 …
bool is_mpi_library(std::string_view file_name) noexcept;

/// The MPI library that an executable file is linked to, directly or through other libraries ("libmpi.so.40"), or nothing: not an
/// ELF program, not linked, or linked only at run time (mpi4py): see maps_mpi. Libraries are searched where the dynamic loader
/// would without LD_LIBRARY_PATH, then in `library_path`. Reads files, follows at most 512 libraries, and none through
/// libmuster_io.so, which needs MPI only where it is asked to communicate. Never throws on any file.
std::optional<std::string> links_mpi(std::string const& executable, std::vector<std::string> const& library_path = {});

/// The path of an MPI library in the text of /proc/PID/maps, or nothing; nothing also where libmuster_io.so is there and mpi4py is
/// not, since a program that only reads datasets has MPI in it and does not use it. Pure.
std::optional<std::string> mpi_in_maps(std::string_view maps);

/// The path of the MPI library that a living process has loaded, or nothing: none, or no such process, or not ours to read.
std::optional<std::string> maps_mpi(pid_t pid);

}  // namespace muster
