// One rank of a measurement of collectives: opens its way to the others and follows orders, which come through pipes or from rank 0.
#pragma once

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "bench/collectives/collectives_job.hpp"
#include "bench/collectives/rank/measured_rank.hpp"
#include "bench/collectives/rank/pair_traffic.hpp"
#include "bench/collectives/raw_nccl.hpp"
#include "comm/communicator.hpp"

namespace muster {

/// Follows the orders that bench/peers/mpi_collectives.c follows, and three more:
///     bound BYTES                         measures this core's memory while the other ranks do the same, and answers microseconds
///                                         of a memcpy and of a triad of that size
///     pair FIRST SECOND                   chooses two ranks, -1 -1 none
///     messages BYTES WINDOW ROUNDS BOTH   sends messages between them (window 0: there and back), and answers microseconds and
///                                         wrong bytes
class ordered_rank {
  public:
    /// Collective. Over the named backend or "raw-nccl", on that many pretended nodes; as comm_options have it, with another deadline where
    /// one is given. Throws comm_error, errc::unavailable.
    ordered_rank(identity who, comm_options options, int nodes, memory_of_tensors memory);
    ordered_rank(ordered_rank const&) = delete;
    ordered_rank& operator=(ordered_rank const&) = delete;

    /// Collective.
    rank_answer follow(std::string const& order);

    int rank() const noexcept { return by_.rank; }
    int size() const noexcept { return by_.ranks; }
    std::string const& version() const noexcept { return by_.version; }
    communicator& over() noexcept { return *over_; }  ///< not of raw-nccl

  private:
    void choose(std::istringstream& words);
    void make(std::istringstream& words);
    rank_answer bound(std::size_t bytes);
    rank_answer messages(std::istringstream& words);

    std::shared_ptr<cuda::device const> gpu_;
    std::unique_ptr<raw_nccl> nccl_;
    std::optional<communicator> over_;
    way_to_ranks by_;
    measured_rank measured_;
    std::unique_ptr<pair_traffic> pair_;
};

/// The ranks of a job, of which this process is rank 0: they follow its orders, as it does itself, until it ends. They have one
/// thread each, and sleep in a collective while they have no order.
class ranks_of_job : public ordered_ranks {
  public:
    explicit ranks_of_job(ordered_rank& mine) : mine_(mine) {}  ///< which must live longer
    ranks_of_job(ranks_of_job const&) = delete;
    ranks_of_job& operator=(ranks_of_job const&) = delete;

    rank_answers ask(std::string const& order, duration deadline) override;  ///< the deadline is the communicator's
    std::string version(duration) override { return mine_.version(); }
    /// Ends the others.
    void end();

  private:
    ordered_rank& mine_;
};

/// Does what the other ranks of the job do: follows rank 0's orders.
void follow_rank_0(ordered_rank& mine);

}  // namespace muster
