// Tags distinguish operations, their phases and their arguments. Pure.
#pragma once

#include <bit>
#include <cstdint>

#include "comm/backend/collective_backend.hpp"

namespace muster::detail {

/// The kind of a message. Only the first of the two phases of an allreduce differs between ranks whose arguments differ.
enum class traffic : unsigned {
    reduce = 0,    ///< unreduced parts of an allreduce or reducescatter
    gather = 1,    ///< reduced parts of an allreduce
    pairwise = 2,  ///< allgather with counts, alltoall
    sendrecv = 3,  ///< between two ranks
};

/// A tag holds the kind of traffic (2 bits), a sequence number (13 bits), then bits of a hash of the arguments, to the end of
/// MPI's room. So a message that does not fit is never received: Open MPI 4.1 writes beyond the end of the memory if one is too
/// long.
constexpr unsigned tag_sequences = 1u << 13;

constexpr std::uint64_t mix(std::uint64_t hash) noexcept {
    return (hash ^ (hash >> 32)) * 0x9e3779b97f4a7c15u;
}

/// `upper` is MPI's largest tag. It stays free with those below it if possible (see blame_tag, through_tag).
constexpr int make_tag(traffic kind, unsigned sequence, std::uint64_t hash, int upper) noexcept {
    auto const unit = std::uint64_t{4} * tag_sequences;
    auto const places = (static_cast<std::uint64_t>(upper) + 1) / unit;
    auto const room = places > 1 ? places - 1 : 1;
    return static_cast<int>((hash >> 32) % room * unit + sequence % tag_sequences * 4 + static_cast<unsigned>(kind));
}

/// Returns the tag of the same operation for another kind of traffic.
constexpr int tag_of_traffic(int tag, traffic kind) noexcept {
    return tag / 4 * 4 + static_cast<int>(kind);
}

constexpr traffic traffic_of(int tag) noexcept {
    return static_cast<traffic>(static_cast<unsigned>(tag) % 4);
}
constexpr unsigned sequence_of(int tag) noexcept {
    return static_cast<unsigned>(tag) / 4 % tag_sequences;
}

/// Returns the tag of the message of a rank that gives up; -1 (none) if MPI has few tags.
constexpr int blame_tag(int upper) noexcept {
    return upper >= static_cast<int>(2 * 4 * tag_sequences - 1) ? upper : -1;
}

/// Returns the tag of the message of a rank that gives up and has got back all that it sent; -1 (none) if MPI has few tags.
constexpr int through_tag(int upper) noexcept {
    return blame_tag(upper) < 0 ? -1 : upper - 1;
}

/// Hashes the arguments of an allreduce or reducescatter, the same on all ranks.
inline std::uint64_t hash_of_reduction(collective const& what) noexcept {
    std::uint64_t hash = mix(what.in.count * 8 + static_cast<std::uint64_t>(what.in.type));
    hash = mix(hash + static_cast<std::uint64_t>(what.how) * 16 + static_cast<std::uint64_t>(what.what));
    if (!what.scale.is_one()) {
        hash = mix(hash + static_cast<std::uint64_t>(std::bit_cast<std::uint64_t>(what.scale.before)));
        hash = mix(hash + static_cast<std::uint64_t>(std::bit_cast<std::uint64_t>(what.scale.after)));
    }
    return hash;
}

/// Hashes one message between two ranks, the same on both.
inline std::uint64_t hash_of_message(collective::kind what, dtype type, std::size_t elements) noexcept {
    return mix(mix(elements * 8 + static_cast<std::uint64_t>(type)) + static_cast<std::uint64_t>(what));
}

}  // namespace muster::detail
