// Collectives by MPI's own algorithms.
#pragma once

#include <array>
#include <vector>

#include "comm/backend/collective_backend.hpp"
#include "comm/mpi/mpi_call.hpp"
#include "comm/mpi/mpi_messages.hpp"
#include "comm/tensor/tensor.hpp"

namespace muster::detail {

// Reductions as MPI operations.

/// Returns the type that MPI moves; for f16 and bf16, which it does not know, that of two-byte numbers.
MPI_Datatype mpi_type(dtype type) noexcept;

/// The operations of one communicator, made at their first use. They are MPI's own if these mean the same, since networks may
/// compute them; muster's for f16 and bf16, and for min and max of floating types, where MPI does not define the result for NaN.
/// Average is sum: the division comes after.
class mpi_ops {
  public:
    MPI_Op get(dtype type, reduction how);  ///< throws mpi_error

  private:
    std::array<std::array<unique_op, 5>, 8> made_;  // [dtype][reduction]
};

/// An allreduce, broadcast, even allgather or barrier as MPI's non-blocking collectives, in pieces that MPI can count.
class mpi_native {
  public:
    /// Starts; the views must stay valid. Throws mpi_error.
    void start(direct_world const& world, mpi_ops& ops, collective const& what);

    /// Returns whether `out` holds the result. Never blocks. Throws mpi_error.
    bool advance();

    /// Returns whether MPI no longer uses the memory.
    bool released() noexcept;

  private:
    void start_allreduce(mpi_ops& ops);
    void start_broadcast();
    void start_allgather();
    MPI_Request* next_request() { return &requests_.emplace_back(MPI_REQUEST_NULL); }

    direct_world world_;
    collective what_;
    std::vector<MPI_Request> requests_;
    std::vector<unique_type> types_;  // the requests still need them
};

}  // namespace muster::detail
