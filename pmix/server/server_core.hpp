// The state that the server's upcalls and the launcher's loop share. Internal: names PMIx types.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "pmix/library/info_list.hpp"
#include "pmix/server/server_job.hpp"

namespace muster::pmix {

/// The library's threads `post`; the thread that owns the server runs what they posted inside `run`. Everything but `post`
/// belongs to that one thread, so that no upcall ever waits for the launcher and no launcher state needs a lock.
class server_core {
  public:
    using work = std::function<void(server_core&)>;

    explicit server_core(job description);

    void post(work item) noexcept;  ///< from any thread; never blocks for longer than a queue's push
    void run();                     ///< does all that was posted
    int event_fd() const noexcept { return wake_.get(); }

    /// The rank of a process of this job, or -1.
    int rank_of(pmix_proc_t const& proc) const noexcept;
    void emit(server_event event) { events.push_back(std::move(event)); }

    job const description;
    std::vector<server_event> events;

    // Published data (PMIx_Publish, MPI_Publish_name) and the lookups that wait for it: upcall_publish.cpp.
    struct published {
        pmix_proc_t owner;
        info_list value;  ///< one entry
    };
    struct pending_lookup {
        std::vector<std::string> keys;
        std::size_t needed;
        pmix_lookup_cbfunc_t answer;
        void* cookie;
    };
    std::map<std::string, published, std::less<>> data;
    std::vector<pending_lookup> lookups;

    // These hold what goes to the servers of other nodes, and who waits for what comes back: upcall_fence.cpp, upcall_direct_modex.cpp.
    struct pending_modex {
        pmix_modex_cbfunc_t answer;
        void* cookie;
    };
    server_mail mail;
    std::map<std::string, pending_modex> fences;
    std::map<int, pending_modex> questions;
    int next_question = 1;

    // Groups by name, with the id that stands for each generation: upcalls.cpp.
    std::size_t next_context_id = 1;

  private:
    unique_fd wake_;
    std::mutex lock_;
    std::deque<work> queue_;
};

/// The server that upcalls belong to: the module's functions carry no pointer to it. nullptr without a server.
server_core* active_core() noexcept;
void set_active_core(server_core* core) noexcept;

/// Returns whether the active server is one of several: what all of them would have to know together (names that are published, groups,
/// MPI_Comm_connect) it refuses.
bool core_spans_nodes() noexcept;

/// The server module; each upcall is in its own file.
pmix_server_module_t upcalls() noexcept;

/// The job's description as PMIx keys.
info_list describe_job(job const& description);

/// Returns how many processors the job's ranks may use together, from their cpusets, or from this process' own mask if they are not
/// bound. Throws errc::usage on an invalid cpuset.
int count_processors(job const& description);

/// Answers with a copy of `data`, or with nothing if `data` is empty.
void answer_modex(server_core::pending_modex const& whom, pmix_status_t status, std::string const& data);

/// Asks the library for what the local rank of that question has published; the answer goes into the mail.
void look_up_for(server_core& core, modex_message const& question);

/// `status` as the answer to an operation, on the launcher's thread.
void answer_later(pmix_op_cbfunc_t answer, void* cookie, pmix_status_t status);

}  // namespace muster::pmix
