// Starts and ends the server of the PMIx library. Internal: names PMIx types.
#pragma once

#include <pmix_common.h>

#include <memory>
#include <string>

#include "base/units.hpp"
#include "pmix/library/completion.hpp"
#include "pmix/server/server_job.hpp"

namespace muster::pmix {

/// Says how long the library may take for each of its steps.
inline constexpr duration library_deadline{10};

/// The server's own name among the library's processes.
std::string server_name_of(job const& description);

/// The parts of the library that clients use if they learn of them before it has started.
inline constexpr struct { char const *gds = "hash", *psec = "native"; } client_parts;

/// Makes the process' environment what the library and its hwloc are to read, which have no other way to learn it: no variable of an outer
/// launcher, and which of its parts it opens; those of `client_parts` if clients use them. Call before there is any thread of the library's.
void prepare_library_environment(bool clients_know);

/// `own`, an hwloc_topology_t of this program's hwloc, as one of the library's hwloc, which may be another version: `own` itself,
/// or a copy that lives as long as the process, in which one server is all that starts. Null where the library's hwloc cannot be
/// asked: the library then looks at the machine itself.
void* topology_for_library(void* own);

/// Begins to start the server, in a thread. With `listener`, a socket that listens at 127.0.0.1, it listens there, and the call
/// fails with PMIX_ERR_NOT_SUPPORTED if it does not; the descriptor must live until then. The topology must live as long as the server; it may hold none.
std::shared_ptr<completion> start_library(job const& description, pmix_topology_t& topology, int listener = -1);

/// Tells the server of the job and of its ranks here. Throws library_error, errc::timeout.
void register_job(job const& description);

/// Ends the server. False if it did not within the deadline: it is left to itself, and what it may still use with it.
bool stop_library();

}  // namespace muster::pmix
