// The options with which a communicator is made.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "comm/tensor/tensor.hpp"

namespace muster {

// A report from outside that ranks of a communicator are lost, or that its world has ended. It ends waits at once.

/// Whoever learns of the loss calls tell(); the threads that wait ask is_told(). Thread safe.
class peer_loss {
  public:
    peer_loss() = default;
    peer_loss(peer_loss const&) = delete;
    peer_loss& operator=(peer_loss const&) = delete;

    /// Reports `ranks`, numbered as in the communicator. A later report adds its ranks and keeps the first `why`.
    void tell(std::string_view why, std::vector<int> const& ranks);
    bool is_told() const noexcept { return told_.load(std::memory_order_acquire); }

    /// Throws comm_error (errc::peer_failed) after a report; the message says that `speaker` cannot finish.
    void throw_if_told(std::string_view speaker) const;

    /// Sets what the first report calls, on the thread of tell(); calls it at once if there already was one. Null removes it, after a running
    /// call has ended.
    void when_told(std::function<void()> call);

  private:
    std::atomic<bool> told_{false};
    mutable std::mutex guard_;  // guards what follows
    std::string why_;
    std::vector<int> ranks_;
    std::function<void()> call_;
};

struct comm_options {
    /// The name of a row of the table of backends ("self", "nccl", "hierarchical", "shm", "mpi", "tcp": the order in
    /// which they are tried), or "" for the first that can serve this world and reaches `memory`.
    std::string backend;

    /// Backend tcp: where each rank listens (tcp_address()), by rank, if the ranks need not exchange it over PMIx. If set, tcp joins the
    /// nodes.
    std::vector<std::string> addresses;

    /// Backend tcp: the network interface whose address the other nodes use for this rank; "" lets muster choose.
    std::string network_interface;

    /// The memory in which the tensors lie.
    memory_kind memory = memory_kind::host;

    /// Device memory: this rank's GPU, as CUDA numbers those that this process sees (`muster run` sets MUSTER_GPU_INDEX). -1
    /// takes the GPU of the calling thread's CUDA context, else the only one, else that of the local rank.
    int device = -1;

    /// The ranks of the job step that form the communicator, if not all: they are numbered in this order, and only they make it.
    /// The identity that it is made with is the one within this list. For the backends self, shm and mpi.
    std::vector<int> members;

    /// Seconds from wait() on after which an operation is given up; 0 waits without end.
    duration deadline{1800.0};

    /// The program calls MPI from several threads at once (a communicator itself still takes one call at a time). Costs latency.
    bool several_threads = false;

    /// Finalises MPI, if a communicator initialised it, when the process ends, where the ranks then wait for each other, instead of
    /// with the last communicator: so another one can be made later. MUSTER_KEEP_MPI=1 sets it for an exchange.
    bool keep_mpi = false;

    /// In worlds of up to this many ranks the mpi backend exchanges the pieces of an allreduce directly, each rank with each
    /// (fastest, and reduced in the order of the ranks); in larger ones it leaves the algorithm to MPI. The same on all ranks.
    int direct_ranks = 16;

    /// Over several nodes (backend hierarchical), allreduces of at least this many bytes go in steps, within the nodes and across
    /// them; smaller ones, for which three steps take longer than one, go from each rank to each. The same on all ranks.
    std::size_t hierarchical_bytes = std::size_t{1} << 16;

    /// Reports lost ranks from outside, for example from the launcher; may be null. A report ends waits for these ranks at once with
    /// errc::peer_failed, also while the ranks meet over shm.
    std::shared_ptr<peer_loss> loss;

    /// The file of the page in which this rank counts how long it waits for others (wait_page.hpp); "": it does not count.
    std::string wait_page;
};

}  // namespace muster
