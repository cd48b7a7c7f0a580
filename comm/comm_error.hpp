// What goes wrong among ranks.
#pragma once

#include "base/error.hpp"

namespace muster {

/// A collective that cannot be done: wrong arguments (errc::usage), a deadline that passed (errc::timeout), ranks that disagree
/// or failed (errc::peer_failed). The message names the tensor, and the host and rank of whoever speaks.
class comm_error : public error {
  public:
    using error::error;
};

/// An error that MPI returned, with the call's name and MPI's own code.
class mpi_error : public library_error {
  public:
    mpi_error(std::string_view call, int native_code, std::string_view text) : library_error("MPI", call, native_code, text) {}
};

}  // namespace muster
