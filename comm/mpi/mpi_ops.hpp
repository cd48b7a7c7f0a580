// Reductions as MPI operations.
#pragma once

#include <array>

#include "comm/mpi/mpi_call.hpp"
#include "comm/tensor/tensor.hpp"

namespace muster::detail {

/// The type that MPI moves; f16 and bf16, which it does not know, as two-byte numbers.
MPI_Datatype mpi_type(dtype type) noexcept;

/// Operations of one communicator, made at their first use. MPI's own wherever they mean the same, since networks may compute
/// them; ours for f16 and bf16, and for min and max of floating types, where MPI leaves open what becomes of NaN. Average is sum:
/// the division comes after.
class mpi_ops {
  public:
    MPI_Op get(dtype type, reduction how);  ///< throws mpi_error

  private:
    std::array<std::array<unique_op, 5>, 8> made_;  // [dtype][reduction]
};

}  // namespace muster::detail
