// The schedules of all collectives over TCP, by kind, size and number of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/backend/collective_backend.hpp"
#include "comm/tcp/schedule.hpp"
#include "comm/tcp/world.hpp"

namespace muster::tcp {

/// One collective under way. Lives until its schedule has ended.
struct job {
    ticket owner = 0;
    std::uint32_t sequence = 0;  ///< among the collectives of this world, or the sendrecvs of these two ranks
    collective what;
    bool posted = false;  ///< set by the schedule: it gives no more messages, so that the next collective may give its own
};

/// Every rank gives its messages to every other rank in an order that follows from the arguments alone.
///
/// In worlds of up to direct_ranks ranks each rank exchanges with each: a small allreduce in one round of whole tensors, a larger one, and every
/// reducescatter, in segments of which each rank reduces a part. Elements are combined in the order of the ranks, as by shm and by mpi, bit for
/// bit. In larger worlds small allreduces go by recursive doubling, and large ones, reducescatters and allgathers in a ring: the order of
/// combination depends on the ranks' numbers alone, and f16 and bf16 are rounded at each step. Broadcasts go down a tree of ranks if they are small,
/// else from rank to rank in segments. Alltoall and sendrecv exchange with each peer directly.
///
/// `of` stays where it is until the schedule has ended or is destroyed; then no message of it may be left in the world (world::give_up).
schedule schedule_of(world& among, job& of);

// Of one family each.

/// A header that says what this rank takes part in; `count` and `bytes` are those of the message where each has its own.
frame head_of(job const& of, std::size_t count, std::size_t bytes, unsigned step = 0);
schedule reduce_directly(world& among, job& of);
schedule reduce_by_doubling(world& among, job& of);
schedule reduce_in_a_ring(world& among, job& of);
schedule gather_in_a_ring(world& among, job& of);
schedule exchange_pairwise(world& among, job& of);
schedule broadcast_down_a_tree(world& among, job& of);
schedule broadcast_in_a_chain(world& among, job& of);

/// Scratch memory of one schedule.
class scratch {
  public:
    scratch(world& among, std::size_t bytes) : memory_(among.scratch()), piece_(memory_.take(bytes)) {}
    ~scratch() {
        try {
            memory_.put_back(std::move(piece_));
        } catch (...) {  // it is freed
        }
    }
    scratch(scratch const&) = delete;
    scratch& operator=(scratch const&) = delete;
    std::byte* at(std::size_t offset) const noexcept { return piece_.bytes.get() + offset; }

  private:
    scratch_memory& memory_;
    scratch_memory::piece piece_;
};

}  // namespace muster::tcp
