// Opens a module of libmuster_comm.so; says why it cannot be used.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_options.hpp"

namespace muster::modules {

struct opened_module {
    void const* functions = nullptr;  ///< of module_entry; null if the module cannot be used
    std::string why_not;              ///< for people; empty if it can be used
};

/// Opens the module libmuster_comm_<name>.so: the file `given`, or if that is empty the one in the folder muster/ in the folder
/// of libmuster_comm.so. It stays open until the process ends. `needs` is what to install if a library is missing. Never throws
/// for a module that cannot be used.
opened_module open_module(std::string const& name, std::string const& given, std::string const& needs);

/// Returns the files of the MPI libraries that this process has loaded, however it did so.
std::vector<std::string> loaded_mpi_libraries();

// The entry of a module of libmuster_comm.so: its only exported symbol, and the functions behind it.
//
// libmuster_comm.so itself does not need MPI, so loading it does not load MPI. The code that links MPI is in a module, which is
// opened when a communicator first needs it. C++ objects and exceptions pass between them, so both must come from one build.

/// The functions of libmuster_comm_mpi.so. See comm/mpi/mpi_backend.hpp.
struct mpi_functions {
    std::optional<std::string> (*unavailable)(identity const&, comm_options const&);
    std::unique_ptr<collective_backend> (*make_backend)(identity const&, comm_options const&);
    int (*running_world_size)() noexcept;
};

/// The symbol `muster_comm_module` of a module. Its first field has the same meaning in every version.
struct module_entry {
    char const* build;      ///< must equal `this_build`
    void const* functions;  ///< mpi_functions
};

#define MUSTER_TEXT_OF_(number) #number
#define MUSTER_TEXT_OF(number) MUSTER_TEXT_OF_(number)
/// The version and everything that decides the layout of objects.
inline constexpr char const* this_build = MUSTER_VERSION " " __VERSION__ " " MUSTER_TEXT_OF(_GLIBCXX_USE_CXX11_ABI);

}  // namespace muster::modules

extern "C" {
extern __attribute__((visibility("default"))) muster::modules::module_entry const muster_comm_module;
}
