// The PMIx server embedded in the launcher. Connects the MPI and PMIx programs of one node.
#pragma once

#include <memory>
#include <vector>

#include "base/environment.hpp"
#include "pmix/server/server_job.hpp"

namespace muster::pmix {

/// Says when the library's server is started.
enum class library_start {
    at_once,
    at_first_call,  ///< where it can be: once a rank connects, so that programs without PMIx do not wait for it (3 ms)
};

/// An embedded PMIx server. One per process. Not thread safe: everything is called from the thread that made it.
class server {
  public:
    /// Starts the library's server with this job registered. Blocks until it is (2 to 6 ms). Removes the PMIX_* variables of an
    /// outer launcher from this process (the library would follow them). No other thread may read or change the environment of the
    /// process then. Call it before some 900 file descriptors are open: the library's listener uses select(). At the first call, `poll`
    /// starts it (so that this is what blocks, and throws); that is done for a job of this node of up to 128 ranks, whose descriptors
    /// leave the library some below 900, with a version of the library that client_variables.hpp knows; others start at once. Throws
    /// library_error naming the PMIx call, errc::timeout if the library does not answer within 10 s, and errc::usage for a job without
    /// ranks or name, for an invalid cpuset, and for a second server in this process: the library starts only one.
    explicit server(job const& description, library_start when = library_start::at_once);
    ~server();  ///< ends the library's server; never blocks for more than 2 s

    /// The process is about to end: the destructor will leave the library as it is, since its orderly end takes 1 ms.
    void leave();

    server(server const&) = delete;
    server& operator=(server const&) = delete;

    /// Sets the variables that rank needs to come up as a client: PMIX_* (replacing what is there), and as defaults what Open MPI
    /// wants (client_variables.hpp). Throws library_error.
    void set_client_environment(int rank, environment& variables);

    bool is_library_started() const noexcept;

    int event_fd() const noexcept;  ///< readable while `poll` has something; for an epoll set
    /// All events since the last call. Ranks wait for it: call it promptly. Blocks only where it starts the library (at the first
    /// call), and throws only then, library_error or errc::timeout: no rank can connect any more.
    std::vector<server_event> poll();

    /// Returns, in a job of several nodes and after `poll`, what is to be carried to the servers of the others since the last call.
    server_mail take_mail();
    /// The parts of all servers, in any order, have come together.
    void finish_exchange(std::string const& name, std::string const& parts);
    /// A question or an answer of another node's server has come.
    void take(modex_message const& message);

    /// Tells the survivors (PMIX_ERR_PROC_ABORTED, or _BY_SIG, or PMIX_ERR_PROC_TERM_WO_SYNC for one that exits with 0 before it
    /// finalised). `wait_status` is waitpid's. Nobody hears of a rank that ended in order. Never blocks.
    void report_exit(int rank, int wait_status);
    /// Lets the library forget the clients that were reported since the last call. It wakes a thread of the library for each, so
    /// it reports many together, and none if the server ends as well. Never blocks.
    void forget_ended();

  private:
    struct state;
    void start(int listener = -1);
    void start_waited_for();
    std::shared_ptr<state> state_;
    bool is_left_ = false;
};

}  // namespace muster::pmix
