// Collectives that consist of messages between pairs of ranks alone.
#pragma once

#include <vector>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/deadlines.hpp"
#include "comm/mpi/mpi_messages.hpp"

namespace muster::detail {

/// An allgather with counts, an alltoall or a sendrecv: every message is posted at once, receives first; each rank's order of
/// peers begins behind itself, so that at no time all send to one. Traffic of a rank is what it has to send and to receive.
/// Messages are distinguished by their number of elements and type (make_tag): a rank that expects something else finds that out
/// and writes nothing.
class mpi_pairwise {
  public:
    /// Starts; the views must stay valid. `sequence` counts, on both ends of every message, the collectives of `world`, or the
    /// sendrecvs of these two ranks. Throws mpi_error.
    void start(direct_world const& world, unsigned sequence, collective const& what);

    /// True once everything has arrived and gone. Never blocks. Throws mpi_error, or comm_error if a rank sends something else.
    bool advance();

    void abandon() noexcept { messages_.cancel_receives(); }
    bool released() noexcept { return messages_.released(); }
    void mark_pending(std::vector<bool>& ranks) noexcept { messages_.mark_pending(ranks); }

  private:
    struct transfer {
        element_range sent, received;  // of `in` and of `out`
    };
    transfer transfer_with(int peer) const noexcept;
    int tag_for(std::size_t elements) const noexcept;
    void refuse_mismatch() const;

    direct_world world_;
    unsigned sequence_ = 0;
    mismatch_timer mismatch_timer_;
    collective what_;
    std::vector<std::size_t> send_begins_, receive_begins_;  // running sums of the counts
    mpi_messages messages_;
};

}  // namespace muster::detail
