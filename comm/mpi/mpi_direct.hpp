// Collectives by messages alone. In the allreduce of small worlds and in every reducescatter each rank sends to every other one; others consist of messages
// between pairs.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/deadlines.hpp"
#include "comm/backend/rank_parts.hpp"
#include "comm/mpi/mpi_messages.hpp"

namespace muster::detail {

/// One allreduce or reducescatter as a schedule of MPI_Isend and MPI_Irecv.
///
/// Small tensors: each rank sends all of its tensor to every other one and reduces all of them. Large ones go in segments, two at
/// a time; rank r gets the r-th part of a segment from every rank, reduces it, and sends the result to every rank. Both reduce in
/// the order of the ranks, so the result depends neither on the size nor on the way, and is the same on all ranks. Traffic of a
/// rank for S bytes: S (n-1), or 2 S (n-1)/n. Scratch memory is at most that of two segments. A reducescatter has only the first
/// of these two phases, S (n-1)/n; its segments are pieces of every rank's share.
///
/// Messages carry a tag of operation, arguments and phase; all ranks send those of one tag in the order of the segments. So a
/// tensor of another size on another rank is never received: Open MPI 4.1 writes beyond the end of the memory if a message is too
/// long. Once a millisecond the schedule asks what arrived instead.
class direct_allreduce {
  public:
    /// Starts; the views must stay valid. `sequence` is this operation's number, the same on all ranks. Throws mpi_error.
    void start(direct_world const& world, unsigned sequence, collective const& what);

    /// Returns whether `out` holds the result. Never blocks. Throws mpi_error, or comm_error if another rank's tensor has another
    /// size.
    bool advance();

    /// Cancels the receives; advance() must not be called any more.
    void abandon() noexcept;

    bool is_short() const noexcept { return whole_; }  ///< one message from each rank
    /// Returns whether MPI no longer uses the memory, for abandoned operations.
    bool released() noexcept;

    /// Marks the ranks from which a message has not come, or to which one is not yet sent.
    void mark_pending(std::vector<bool>& ranks) noexcept;

  private:
    struct aligned_delete {
        void operator()(std::byte* memory) const noexcept { ::operator delete[](memory, std::align_val_t{64}); }
    };
    using part = element_range;  // of the tensor
    struct segment {
        enum class phase { reduce, gather, finished };
        phase where = phase::finished;
        std::size_t number = 0;
        mpi_messages messages;
        std::unique_ptr<std::byte[], aligned_delete> scratch;
        std::size_t scratch_bytes = 0;
    };

    part part_of(segment const& of, int rank) const noexcept {
        return whole_ ? part{0, what_.in.count} : segments_.part(of.number, rank);
    }
    std::byte* scratch_for(segment& of, std::size_t index, std::size_t bytes) const noexcept {
        return of.scratch.get() + index * bytes;
    }
    void start_reduce(segment& next);
    void reduce(segment& of);
    void start_gather(segment& of);
    bool test(segment& of);
    void start_next();
    void refuse_mismatch() const;

    direct_world world_;
    unsigned sequence_ = 0;
    int tag_ = 0;         // of the first phase
    int gather_tag_ = 0;  // of the second
    collective what_;
    std::size_t element_bytes_ = 1;
    bool whole_ = true;      // small: no parts
    bool scatters_ = false;  // a reducescatter
    segmented segments_;
    std::size_t next_segment_ = 0, end_segment_ = 0;
    mismatch_timer mismatch_timer_;
    std::size_t oldest_ = 0;  // index into window_
    std::size_t under_way_ = 0;
    std::array<segment, 2> window_;
    std::vector<void const*> sources_;
};

// Collectives that consist of messages between pairs of ranks alone.

/// An allgather with counts, an alltoall or a sendrecv. Every message is posted at once, receives first; each rank starts with
/// the peer next to it, so that never all ranks send to one. Traffic of a rank is what it has to send and to receive. Messages
/// are distinguished by their number of elements and type (make_tag): a rank that expects something else finds that out and
/// writes nothing.
class mpi_pairwise {
  public:
    /// Starts; the views must stay valid. `sequence` counts, on both ends of every message, the collectives of `world`, or the
    /// sendrecvs of these two ranks. Throws mpi_error.
    void start(direct_world const& world, unsigned sequence, collective const& what);

    /// Returns whether everything has been sent and received. Never blocks. Throws mpi_error, or comm_error if a rank sends
    /// something else.
    bool advance();

    void abandon() noexcept { messages_.cancel_receives(); }
    bool released() noexcept { return messages_.released(); }
    void mark_pending(std::vector<bool>& ranks) noexcept { messages_.mark_pending(ranks); }

  private:
    rank_transfer const& transfer_with(int peer) const noexcept { return transfers_[static_cast<std::size_t>(peer)]; }
    int tag_for(std::size_t elements) const noexcept;
    void refuse_mismatch() const;

    direct_world world_;
    unsigned sequence_ = 0;
    mismatch_timer mismatch_timer_;
    collective what_;
    std::vector<rank_transfer> transfers_;  // by rank
    mpi_messages messages_;
};

}  // namespace muster::detail
