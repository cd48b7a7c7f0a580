// Ranks that read or write one file together: their communicator and their steps.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "comm/communicator.hpp"
#include "comm/fail_together.hpp"

namespace muster {

/// A communicator of this process alone, which uses no MPI whatever the program uses elsewhere.
std::shared_ptr<communicator> alone();

/// Returns how a communicator is made whose ranks read or write one file together: several do so over MPI, which the backend chosen by
/// itself need not be.
comm_options options_for_files(identity const& who);

/// HDF5's view of the communicator (io/hdf5/hdf5.hpp, mpi_handle); null for a single rank without MPI. Throws errc::unavailable
/// for several ranks without MPI.
void const* mpi_handle(communicator const& ranks);

/// Collective: gives all ranks the bytes that rank 0 has.
void broadcast_bytes(communicator& ranks, std::string_view what, std::string& bytes);

/// Collective: runs `step` on every rank. If it fails on one, every rank throws: a single rank its own exception, several what
/// comm/fail_together.hpp says. `step` itself is not collective, except for calls to HDF5.
template <typename Step>
void run_step(communicator& ranks, std::string_view what, Step&& step, member_is member = member_is::rank) {
    if (ranks.size() == 1)
        step();
    else
        run_on_all(ranks, what, step, member);
}

}  // namespace muster
