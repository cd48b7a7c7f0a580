// The initialisation of MPI is shared by all communicators of the process; the last one finalises it.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "base/log.hpp"
#include "base/units.hpp"
#include "comm/backend/comm_options.hpp"
#include "comm/backend/processes/rank_processes.hpp"
#include "comm/backend/world_record.hpp"
#include "comm/mpi/mpi_call.hpp"
#include "pmix/identity.hpp"

namespace muster::detail {

/// The message of a communicator that comes too late.
inline constexpr char const* mpi_is_over =
    "MPI has been finalised and cannot be initialised again; keep one communicator until the program ends, or let MPI be kept "
    "(MUSTER_KEEP_MPI=1, comm_options::keep_mpi)";

/// Finalises MPI with the last owner if it initialised it, or when the process ends (comm_options::keep_mpi). Thread safe.
class mpi_runtime {
  public:
    /// Initialises MPI unless it is initialised already: with MPI_THREAD_SERIALIZED, or MPI_THREAD_MULTIPLE if
    /// options.several_threads. Throws mpi_error; errc::unavailable if MPI has been finalised, or if its thread level does not
    /// allow calls from this thread; errc::timeout, naming ranks that are stopped or missing on this node, if it does not come up
    /// within options.deadline. After that there is no other try.
    static std::shared_ptr<mpi_runtime> acquire(identity const& who, comm_options const& options);

    /// If it has to finalise MPI, it first waits for the other ranks in a barrier. If one of them is gone, or does not come
    /// within the deadline, it leaves MPI as it is, since MPI_Finalize would wait without end.
    ~mpi_runtime();
    mpi_runtime(mpi_runtime const&) = delete;
    mpi_runtime& operator=(mpi_runtime const&) = delete;

    /// Returns how long calls that block for other ranks may take, on another thread; 0 if only this one may call MPI.
    duration bound(duration deadline) const noexcept { return any_thread_ ? deadline : duration{0}; }

    /// Keeps all ranks of MPI's world for the destructor.
    void remember(std::vector<world_record> ranks, int own, duration deadline);

    /// Returns the processes of this node's ranks as they were seen before MPI came up; none if all are on one node or the
    /// program had initialised it.
    std::vector<seen_process> const& seen() const noexcept { return seen_; }

    /// Do not call MPI_Finalize, which would wait for ranks that do not come.
    void leave_unfinalised() noexcept { leave_ = true; }

  private:
    mpi_runtime(identity const& who, comm_options const& options);
    void check_level(bool several_threads);
    bool all_reach_the_end() noexcept;

    std::shared_ptr<spdlog::logger> log_ = spdlog::default_logger();  // a static communicator may outlive the registry of loggers
    bool owns_ = false;
    bool any_thread_ = false;
    std::atomic<bool> leave_ = false;
    std::vector<seen_process> seen_;
    std::vector<world_record> ranks_;
    int own_ = 0;
    duration deadline_{0};
};

// The rendezvous of ranks over MPI, and the world that it makes.

/// A group's own MPI communicator, which returns errors, and the records of its ranks, in their order.
struct mpi_world {
    unique_comm comm;
    std::vector<world_record> ranks;
    bool crowded = false;  ///< the ranks of this node, in this world or not, share processors
};

/// Collective over MPI's world, or over options.members of it. Checks the ranks (check_world), which the identities number. Throws what check_world does, mpi_error, errc::unavailable if
/// MPI numbers the members otherwise than the launcher does, and errc::timeout after options.deadline; MPI is then stuck.
mpi_world rendezvous(mpi_runtime& runtime, identity const& who, comm_options const& options);

/// Collective over `ranks` (of `whole`, distinct, this rank `own` among them). Throws mpi_error and errc::timeout.
mpi_world rendezvous_of_some(mpi_runtime& runtime, mpi_world const& whole, std::span<int const> ranks, int own,
                             comm_options const& options);

}  // namespace muster::detail
