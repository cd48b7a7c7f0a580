// The entry of a module of libmuster_comm.so: its one exported symbol, and the functions behind it.
//
// libmuster_comm.so itself does not need MPI, so that loading it makes no process one of MPI. What links MPI stands in a
// module, which is opened when a communicator first needs it. C++ objects and exceptions cross the border, so both sides must
// come from one build.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_options.hpp"

namespace muster::modules {

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
/// The version and what decides the layout of objects.
inline constexpr char const* this_build = MUSTER_VERSION " " __VERSION__ " " MUSTER_TEXT_OF(_GLIBCXX_USE_CXX11_ABI);

}  // namespace muster::modules

extern "C" {
extern __attribute__((visibility("default"))) muster::modules::module_entry const muster_comm_module;
}
