// The same code alone and with others: what io needs of a communicator, with a null one meaning a single process.
#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <string_view>

#include "comm/backend/comm_options.hpp"
#include "pmix/identity.hpp"

namespace muster {

class communicator;

namespace together {

int rank(communicator* comm);
int size(communicator* comm);

/// How a communicator is made whose ranks read or write one file together: several do so over MPI, which the backend chosen by
/// itself need not be.
comm_options options_for_files(identity const& who);

/// HDF5's view of the communicator (io/hdf5/hdf5.hpp, mpi_handle), or null if there is none or it is a single process without
/// MPI.
void const* mpi_handle(communicator* comm);

/// Collective: returns if no rank brings a failure. Else every rank throws: alone its own exception, among others comm_error
/// (comm/fail_together.hpp) that says what failed and repeats the message of each failed rank.
void agree(communicator* comm, std::string_view what, std::exception_ptr failure);

/// Collective: element by element over all ranks, in place. Values below 2^63; sums modulo 2^64.
void sum(communicator* comm, std::span<std::uint64_t> values);
void max(communicator* comm, std::span<std::uint64_t> values);

/// Runs `step` on this rank, then agrees on its outcome.
template <typename Step>
void run(communicator* comm, std::string_view what, Step&& step) {
    std::exception_ptr failure;
    try {
        step();
    } catch (...) {
        failure = std::current_exception();
    }
    agree(comm, what, failure);
}

}  // namespace together
}  // namespace muster
