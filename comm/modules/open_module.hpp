// Opens a module of libmuster_comm.so; says why one cannot be used.
#pragma once

#include <string>
#include <vector>

namespace muster::modules {

struct opened_module {
    void const* functions = nullptr;  ///< of module_entry; null where the module cannot be used
    std::string why_not;              ///< for people; empty where it can
};

/// The module libmuster_comm_<name>.so: the file `given`, or if that is empty the one in the folder muster/ in the folder of
/// libmuster_comm.so. It stays open until the process ends. `needs` is what to install where a library is missing.
/// Never throws for a module that cannot be used.
opened_module open_module(std::string const& name, std::string const& given, std::string const& needs);

/// The files of the MPI libraries that this process has loaded, by whatever way.
std::vector<std::string> loaded_mpi_libraries();

}  // namespace muster::modules
