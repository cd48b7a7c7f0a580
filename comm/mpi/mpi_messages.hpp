// Messages between this rank and others. Sent and received without blocking.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/backend/collective_backend.hpp"
#include "comm/mpi/mpi_call.hpp"

namespace muster::detail {

// Tags that tell operations, their phases and their arguments apart. Pure.

/// What a message belongs to. Only the first of the two phases of an allreduce differs between ranks whose arguments differ.
enum class traffic : unsigned {
    reduce = 0,    ///< unreduced parts of an allreduce or reducescatter
    gather = 1,    ///< reduced parts of an allreduce
    pairwise = 2,  ///< allgather with counts, alltoall
    sendrecv = 3,  ///< between two ranks
};

/// A tag holds the kind of traffic (2 bits), a sequence number (13 bits), then as many bits of a hash of the arguments as MPI has
/// room for, so that what does not fit is never received: Open MPI 4.1 writes what is too long beyond the end of the memory
/// given.
constexpr unsigned tag_sequences = 1u << 13;

constexpr std::uint64_t mix(std::uint64_t hash) noexcept {
    return (hash ^ (hash >> 32)) * 0x9e3779b97f4a7c15u;
}

/// `upper` is MPI's largest tag, which is left free with those below it if it can be (see blame_tag, through_tag).
constexpr int make_tag(traffic kind, unsigned sequence, std::uint64_t hash, int upper) noexcept {
    auto const unit = std::uint64_t{4} * tag_sequences;
    auto const places = (static_cast<std::uint64_t>(upper) + 1) / unit;
    auto const room = places > 1 ? places - 1 : 1;
    return static_cast<int>((hash >> 32) % room * unit + sequence % tag_sequences * 4 + static_cast<unsigned>(kind));
}

/// The tag of the same operation for another kind of traffic.
constexpr int tag_of_traffic(int tag, traffic kind) noexcept {
    return tag / 4 * 4 + static_cast<int>(kind);
}

constexpr traffic traffic_of(int tag) noexcept {
    return static_cast<traffic>(static_cast<unsigned>(tag) % 4);
}
constexpr unsigned sequence_of(int tag) noexcept {
    return static_cast<unsigned>(tag) / 4 % tag_sequences;
}

/// For the message of a rank that gives up; none (-1) where tags are few.
constexpr int blame_tag(int upper) noexcept {
    return upper >= static_cast<int>(2 * 4 * tag_sequences - 1) ? upper : -1;
}

/// For the message of a rank that gives up and has got back all that it sent; none (-1) where tags are few.
constexpr int through_tag(int upper) noexcept {
    return blame_tag(upper) < 0 ? -1 : upper - 1;
}

/// Of the arguments of an allreduce or reducescatter, the same on all ranks.
inline std::uint64_t hash_of_reduction(collective const& what) noexcept {
    std::uint64_t hash = mix(what.in.count * 8 + static_cast<std::uint64_t>(what.in.type));
    hash = mix(hash + static_cast<std::uint64_t>(what.how) * 16 + static_cast<std::uint64_t>(what.what));
    if (!what.scale.is_one()) {
        hash = mix(hash + static_cast<std::uint64_t>(std::bit_cast<std::uint64_t>(what.scale.before)));
        hash = mix(hash + static_cast<std::uint64_t>(std::bit_cast<std::uint64_t>(what.scale.after)));
    }
    return hash;
}

/// Of one message between two ranks, the same on both.
inline std::uint64_t hash_of_message(collective::kind what, dtype type, std::size_t elements) noexcept {
    return mix(mix(elements * 8 + static_cast<std::uint64_t>(type)) + static_cast<std::uint64_t>(what));
}

/// The ranks that messages go between.
struct direct_world {
    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0;
    int size = 1;
    int largest_tag = 32767;
    std::vector<std::string> const* hosts = nullptr;
};

/// Non-blocking sends and receives that are waited for together. Messages above 256 MiB go in pieces of that, since MPI counts in
/// int. All receives are given one after the other, before the sends or behind them.
class mpi_messages {
  public:
    void clear() noexcept;
    void receive(direct_world const& world, int peer, void* data, std::size_t bytes, int tag);     ///< throws mpi_error
    void send(direct_world const& world, int peer, void const* data, std::size_t bytes, int tag);  ///< throws mpi_error

    bool test();  ///< true once all are through; never blocks; throws mpi_error
    void cancel_receives() noexcept;
    bool released() noexcept;                              ///< true once MPI uses none of the memory any more
    void mark_pending(std::vector<bool>& ranks) noexcept;  ///< sets the place of each rank of whom a message is not through

  private:
    std::vector<MPI_Request> requests_;
    std::vector<int> peers_;  // of each request
    std::size_t first_receive_ = 0, receives_ = 0;
    std::size_t through_ = 0;  // the first so many requests
};

/// The first rank from which a message has arrived that belongs to the operation of `tag`, by traffic and sequence number, but
/// has another tag than `tag_from(rank)`: its arguments differ. -1 if there is none. Asks about all
/// ranks, or `only` one. Throws mpi_error.
template <typename TagFrom>
int find_mismatch(direct_world const& world, int tag, TagFrom&& tag_from, int only = -1) {
    for (int k = 1; k < world.size; ++k) {
        int const peer = (world.rank + k) % world.size;
        if (only >= 0 && peer != only) continue;
        int found = 0;
        MPI_Status status;
        check(MPI_Iprobe(peer, MPI_ANY_TAG, world.comm, &found, &status), "MPI_Iprobe");
        if (found == 0 || status.MPI_TAG == blame_tag(world.largest_tag) || status.MPI_TAG == through_tag(world.largest_tag))
            continue;
        if (traffic_of(status.MPI_TAG) == traffic_of(tag) && sequence_of(status.MPI_TAG) == sequence_of(tag) &&
            status.MPI_TAG != tag_from(peer))
            return peer;
    }
    return -1;
}

/// Throws comm_error: rank `peer` is at another collective than this rank's reduction `what`.
[[noreturn]] void throw_mismatch(direct_world const& world, collective const& what, int peer);

}  // namespace muster::detail
