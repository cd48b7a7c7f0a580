// The job that a PMIx or PMI-1 server serves, and the events that it reports to the launcher.
#pragma once

#include <string>
#include <vector>

namespace muster::pmix {

/// The one job (nspace) that a server serves; all its ranks are on this node.
struct job {
    std::string nspace;  ///< at most 255 bytes, known to nobody but the job: see make_job_name
    std::string host;
    int world_size = 1;
    std::string session_dir;           ///< a short, private (0700) folder that exists; sockets and the ranks' files go below it
    std::string executable;            ///< for PMIX_APP_* and error messages
    std::vector<std::string> cpusets;  ///< each rank's binding in hwloc's list form ("0-3,8"), or empty: unbound
    std::string
        shared_memory_dir;     ///< a private folder on a memory file system for the ranks' shared segments; empty: session_dir
    int usable_cores = 0;      ///< how many processors the ranks may use together; 0: those of the cpusets, or of this process
    void* topology = nullptr;  ///< an hwloc_topology_t of this machine, borrowed for the server's life; nullptr: none is known
};

/// What happened at a server, in order. Produced by the library's threads, consumed by the launcher's loop.
struct server_event {
    enum class kind {
        connected,  ///< the rank initialised its PMI library
        finalized,  ///< the rank finalised it
        aborted,    ///< the rank asked for the whole job to end with `code` (MPI_Abort), saying `text`
        log,        ///< text the rank asked to be shown
    };
    kind what;
    int rank = -1;
    int code = 0;
    std::string text;
};

}  // namespace muster::pmix
