// The allreduce of small tensors where all ranks are on one node. Goes through memory that they share.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/deadlines.hpp"
#include "comm/mpi/mpi_messages.hpp"
#include "comm/mpi/mpi_node_memory.hpp"

namespace muster::detail {

/// Every rank leaves its tensor in its own memory, with a signature of the arguments, and reduces those of all ranks in their
/// order, as direct_allreduce does: to the same bits. Nothing is written before the signatures of all ranks were found equal.
/// Operations end in the order of their start.
class node_allreduce {
  public:
    /// Starts; the views must stay valid. `sequence` is this operation's number, the same on all ranks.
    void start(direct_world const& world, unsigned sequence, collective const& what) noexcept;

    /// True once `out` holds the result. Never blocks. Throws comm_error if another rank is at another collective or has given
    /// up, mpi_error.
    bool advance();

    /// Sets the places of the ranks whose tensor is not there.
    void mark_pending(std::vector<bool>& ranks) const noexcept;

    /// The first of them; -1 if there is none.
    int first_missing() const noexcept;

  private:
    bool post() noexcept;
    bool all_are_there();
    bool misses(int rank) const noexcept;
    void refuse_messages() const;
    void refuse_others();

    direct_world world_;
    unsigned sequence_ = 0;
    std::uint64_t hash_ = 0;
    std::uint64_t number_ = 0;  // in the memory
    bool posted_ = false;
    int next_ = 0;                   // the ranks before this one are there
    std::uint64_t least_known_ = 0;  // of what they had finished
    collective what_;
    mismatch_timer mismatch_timer_;
    std::vector<void const*> sources_;
};

}  // namespace muster::detail
