// The module libmuster_comm_mpi.so: comm/mpi, linked to MPI.
#include "comm/modules/open_module.hpp"
#include "comm/mpi/mpi_backend.hpp"

namespace {

constexpr muster::modules::mpi_functions functions{muster::mpi_unavailable, muster::make_mpi_backend,
                                                   muster::running_mpi_world_size};

}  // namespace

muster::modules::module_entry const muster_comm_module{muster::modules::this_build, &functions};
