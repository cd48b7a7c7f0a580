// The job that a PMIx or PMI-1 server serves, and the events that it reports to the launcher.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace muster::pmix {

/// One node of a job.
struct job_node {
    std::string host;
    std::vector<int> ranks;  ///< in order of local rank
};

/// The one job (nspace) that a server serves; its ranks are on this node, or on several of which each has a server.
struct job {
    std::string nspace;  ///< at most 255 bytes, known to nobody but the job: see make_job_name
    std::string host;
    int world_size = 1;
    std::string session_dir;           ///< a short, private (0700) folder that exists; sockets and the ranks' files go below it
    std::string executable;            ///< for PMIX_APP_* and error messages
    std::vector<std::string> cpusets;  ///< each rank's binding in hwloc's list form ("0-3,8"), or empty: unbound
    std::string
        shared_memory_dir;  ///< a private folder on a memory file system for the ranks' shared segments; empty: session_dir
    std::vector<job_node> nodes = {};  ///< all nodes of a job of several; empty: this one has all ranks
    int node = 0;                      ///< which of them this is
    int usable_cores = 0;  ///< how many processors the ranks may use together; 0: those of the cpusets, or of this process
    /// Gives an hwloc_topology_t of this machine, borrowed for the server's life; called once, when the library's server starts,
    /// whose start then throws what it throws. Empty: none is known.
    std::function<void*()> topology = {};

    bool spans_nodes() const noexcept { return nodes.size() > 1; }
};

/// The nodes of a job, also of one on this node alone.
std::vector<job_node> nodes_of(job const& description);
/// The ranks on this node, and their number; the place of one among them.
std::vector<int> local_ranks_of(job const& description);
int local_size_of(job const& description) noexcept;
int local_rank_of(job const& description, int rank) noexcept;

/// A server's part of an exchange among the servers of `nodes`. Each of them gets the parts of all, one behind the other.
struct exchange_part {
    std::string name;        ///< the same at all of them
    std::vector<int> nodes;  ///< that take part
    std::string data;
};

/// A question for what a rank of another node has published to its own server (direct modex), or the answer to one.
struct modex_message {
    int node = 0;    ///< it goes there, or has come from there
    int number = 0;  ///< of the question
    int rank = 0;    ///< of a question; -1: this is an answer
    int status = 0;  ///< of an answer: PMIx' own
    std::string data;
};

/// The status of an answer that there is nobody to give: PMIX_ERR_NOT_FOUND.
inline constexpr int modex_not_found = -46;

/// Holds what a server wants to be carried to others.
struct server_mail {
    std::vector<exchange_part> parts;
    std::vector<modex_message> modex;
};

/// Holds what happened at a server, in order. Produced by the library's threads, consumed by the launcher's loop.
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
