// The same code alone and with others: what io needs of a communicator, with a null one meaning a single process.
#pragma once

#include <cstdint>
#include <exception>
#include <span>

namespace muster {

class communicator;

namespace together {

int rank(communicator* comm);
int size(communicator* comm);

/// HDF5's view of the communicator (io/hdf5.hpp, mpi_handle), or null if there is none or it is a single process without MPI.
void const* mpi_handle(communicator* comm);

/// Collective: returns if no rank brings a failure; else every rank throws, its own failure or one that names the rank that
/// failed.
void agree(communicator* comm, std::exception_ptr failure);

/// Collective: element by element over all ranks, in place.
void sum(communicator* comm, std::span<std::uint64_t> values);
void max(communicator* comm, std::span<std::uint64_t> values);

/// Runs `step` on this rank, then agrees on its outcome. `step` must not itself wait for other ranks in a way that a failure
/// leaves undone.
template <typename Step>
void run(communicator* comm, Step&& step) {
    std::exception_ptr failure;
    try {
        step();
    } catch (...) {
        failure = std::current_exception();
    }
    agree(comm, failure);
}

}  // namespace together
}  // namespace muster
