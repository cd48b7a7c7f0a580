// The errors of collectives, with the ranks at fault.
#pragma once

#include <memory>
#include <vector>

#include "base/error.hpp"

namespace muster {

/// The error of a collective: wrong arguments (errc::usage), a deadline that passed (errc::timeout), ranks that disagree
/// or failed (errc::peer_failed). The message names the tensor, and the host and rank that threw it.
class comm_error : public error {
  public:
    /// `culprits`: the ranks known to be dead, stopped or late, numbered as in the communicator that throws.
    comm_error(errc code, std::string const& message, std::vector<int> culprits = {})
        : error(code, message), culprits_(std::make_shared<std::vector<int> const>(std::move(culprits))) {}

    /// Returns them in ascending order; empty if no particular rank is known to be at fault.
    std::vector<int> const& culprits() const noexcept { return *culprits_; }

  private:
    std::shared_ptr<std::vector<int> const> culprits_;  // shared: copying an exception must not throw
};

/// An error that MPI returned, with the call's name and MPI's code.
class mpi_error : public library_error {
  public:
    mpi_error(std::string_view call, int native_code, std::string_view text) : library_error("MPI", call, native_code, text) {}
};

}  // namespace muster
