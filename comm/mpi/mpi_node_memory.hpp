// Memory that all ranks of a communicator share where all are on one node. Carries small tensors, which take longer as messages.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "comm/backend/memory/shared_memory.hpp"
#include "comm/backend/world_record.hpp"
#include "comm/mpi/mpi_call.hpp"

// How it is ordered. Every rank writes to its own region alone: data with plain stores, then a number with a release store; who
// reads that number with an acquire load sees the data. Numbers only grow.

namespace muster::detail {

/// What a rank gives for one operation. Of small ones two lines are used: processors fetch them in pairs.
struct alignas(128) node_entry {
    std::atomic<std::uint64_t> number;     ///< of the operation in this memory, from 1
    std::atomic<std::uint64_t> signature;  ///< what must be equal on all ranks
    std::uint64_t finished;                ///< operations that the rank had finished then
    std::array<std::byte, 488> data;       ///< a tensor that fits; larger ones lie apart
};
static_assert(sizeof(node_entry) == 512 && std::atomic<std::uint64_t>::is_always_lock_free);

/// How a rank stands, for those that have waited for a while.
struct alignas(128) node_standing {
    std::atomic<std::uint64_t> finished;  ///< operations that it needs no other's data of any more
    std::atomic<bool> gave_up;            ///< it will start nothing any more
    std::int32_t because_of;              ///< the rank that it waited for; -1 if there was none
};

class node_memory {
  public:
    /// A rank writes entry n only when all others have finished operation n - entries; fewer where the tensor lies apart, so that
    /// large ones stay in the caches.
    static constexpr std::uint64_t entries = 8, large_entries = 4;

    static constexpr std::uint64_t entries_of(std::size_t bytes) noexcept {
        return bytes <= sizeof node_entry::data ? entries : large_entries;
    }

    /// Collective over `comm`, whose ranks have these records. Null on all ranks, with a line in the log, where one of them cannot
    /// share memory with another, and where `largest_bytes`, the same on all, is 0. Throws mpi_error.
    static std::unique_ptr<node_memory> make(MPI_Comm comm, std::span<world_record const> ranks, int own,
                                             std::size_t largest_bytes);

    int rank() const noexcept { return rank_; }
    int size() const noexcept { return static_cast<int>(regions_.size()); }
    std::size_t largest_bytes() const noexcept { return largest_bytes_; }

    node_entry& entry(int rank, std::uint64_t number) const noexcept {
        return *std::launder(reinterpret_cast<node_entry*>(base(rank) + sizeof(node_standing) + at(number) * sizeof(node_entry)));
    }

    /// Where the rank's tensor of that operation lies.
    std::byte* data(int rank, std::uint64_t number, std::size_t bytes) const noexcept {
        if (bytes <= sizeof node_entry::data) return entry(rank, number).data.data();
        return base(rank) + payloads_at + static_cast<std::size_t>(number % large_entries) * payload_step_;
    }

    node_standing& standing(int rank) const noexcept { return *std::launder(reinterpret_cast<node_standing*>(base(rank))); }

    /// Tells the others that this rank will start nothing any more, the first time.
    void give_up(int because_of) noexcept;

    /// Whether the rank has said so, and what it gave.
    bool has_given_up(int rank, int& because_of) const noexcept;

    /// A rank that has started that operation of the communicator here, if it is one of the last ones; -1 if there is none.
    int find_started(std::uint32_t sequence) const noexcept;

    std::uint64_t started = 0;   ///< operations of this rank
    std::uint64_t finished = 0;  ///< the same; in the order of their start
    std::uint64_t others = 0;    ///< what all other ranks are known to have finished

  private:
    static constexpr std::size_t payloads_at = sizeof(node_standing) + entries * sizeof(node_entry);
    static constexpr std::size_t at(std::uint64_t number) noexcept { return static_cast<std::size_t>(number % entries); }
    std::byte* base(int rank) const noexcept { return regions_[static_cast<std::size_t>(rank)].data(); }

    int rank_ = 0;
    std::size_t largest_bytes_ = 0;
    std::size_t payload_step_ = 0;
    std::vector<shm::shared_memory> regions_;  // by rank
};

/// The communicator's number of an operation, and a hash of its arguments.
constexpr std::uint64_t node_signature(std::uint32_t sequence, std::uint64_t hash) noexcept {
    return std::uint64_t{sequence} << 32 | hash >> 32;
}

}  // namespace muster::detail
