// Carries what a host's agent tells a shim of its rank's MPI, and that it runs, over a socket that the shim has as its descriptor 1.
#pragma once

#include <vector>

namespace muster {

/// Of one rank, as the agent's server of PMIx or PMI-1 has seen it.
struct mpi_event {
    enum class kind : int {
        connected,  ///< it has initialised its PMI library
        finalized,  ///< it has finalised it
        aborted,    ///< it asks for the whole job to end with `code`, and may wait until it is killed
        settled,    ///< of a shim: the rank has ended; the answer: all that it did before has been told
        ping,       ///< of a shim; the answer: the agent runs
    };
    kind what = kind::connected;
    int code = 0;
    bool operator==(mpi_event const&) const = default;
};

/// Set for a shim whose descriptor 1 is such a socket.
inline constexpr char mpi_events_variable[] = "MUSTER_MPI_EVENTS";

/// Whole, or not at all: nobody waits for a shim that does not read.
void write_event(int socket, mpi_event const& event) noexcept;

/// Those that are there; none: there will be no more. Does not block where the socket does not.
std::vector<mpi_event> read_events(int socket) noexcept;

}  // namespace muster
