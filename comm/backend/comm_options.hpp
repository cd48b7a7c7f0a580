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

// A report from outside that ranks of a communicator are lost, or that its world has ended: ends waits at once.

/// Told by whoever hears of it, once; asked by the threads that wait. Thread safe.
class peer_loss {
  public:
    peer_loss() = default;
    peer_loss(peer_loss const&) = delete;
    peer_loss& operator=(peer_loss const&) = delete;

    /// Reports `ranks`, numbered as in the communicator. A later report adds its ranks and keeps the first `why`.
    void tell(std::string_view why, std::vector<int> const& ranks);
    bool is_told() const noexcept { return told_.load(std::memory_order_acquire); }

    /// Throws comm_error (errc::peer_failed) if it was told; `speaker` is who cannot go on.
    void throw_if_told(std::string_view speaker) const;

    /// Sets what a report calls, on the thread of tell(); if there was one already, calls it at once. Null removes it, and returns after a call
    /// that is under way.
    void when_told(std::function<void()> call);

  private:
    std::atomic<bool> told_{false};
    mutable std::mutex guard_;  // of what follows
    std::string why_;
    std::vector<int> ranks_;
    std::function<void()> call_;
};

struct comm_options {
    /// The name of a row of the table of backends ("self", "nccl", "hierarchical", "shm", "mpi", "tcp": the order in
    /// which they are tried), or "" for the first that can serve this world and reaches `memory`.
    std::string backend;

    /// Backend tcp: where each rank listens (tcp_address()), in the order of the ranks, where something else than PMIx has told them. Given,
    /// tcp joins the nodes.
    std::vector<std::string> addresses;

    /// Backend tcp: the network interface by whose address the other nodes reach this rank; "" for those that have one.
    std::string network_interface;

    /// Where the tensors lie.
    memory_kind memory = memory_kind::host;

    /// Device memory: which GPU is this rank's, as CUDA numbers those that it shows this process (`muster run` gives it in
    /// MUSTER_GPU_INDEX). -1 is the GPU of the calling thread's CUDA context, else the only one, else that of the local rank.
    int device = -1;

    /// Which ranks of the job step the communicator is of, if not of all: its ranks are numbered in this order, and only they make
    /// it. The identity that it is made with is that within this list. For the backends self, shm and mpi.
    std::vector<int> members;

    /// How long an operation may take from wait() on before it is given up; 0 is without end.
    duration deadline{1800.0};

    /// The program calls MPI from several threads at once (a communicator itself still takes one call at a time). Costs latency.
    bool several_threads = false;

    /// MPI that a communicator initialises is finalised when the process ends, where the ranks then wait for each other, instead of
    /// with the last communicator: after it another one can be made. MUSTER_KEEP_MPI=1 sets it for an exchange.
    bool keep_mpi = false;

    /// In worlds of up to so many ranks the mpi backend exchanges the pieces of an allreduce directly, each rank with each
    /// (fastest, and reduced in the order of the ranks); in larger ones it leaves the algorithm to MPI. The same on all ranks.
    int direct_ranks = 16;

    /// Over several nodes (backend hierarchical), allreduces of so many bytes go in steps, within the nodes and
    /// across them; smaller ones, for which three steps take longer than one, go from each rank to each. The same on all ranks.
    std::size_t hierarchical_bytes = std::size_t{1} << 16;

    /// Reports lost ranks from outside, such as the launcher's word; null: nothing does. A report ends waits for these ranks at once with
    /// errc::peer_failed, also while the ranks meet over shm.
    std::shared_ptr<peer_loss> loss;
};

}  // namespace muster
