// The layout of the memory that the ranks of one node share.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "comm/backend/memory/process_token.hpp"
#include "comm/backend/memory/shared_memory.hpp"
#include "comm/backend/processes/process_watch.hpp"
#include "comm/backend/world_record.hpp"
#include "comm/shm/memory/shared_buffers.hpp"

// The order of memory accesses. Every value except chunk_counters::claimed has one writer, the rank in whose region it lies. A
// rank first writes data with plain stores, then publishes a number with a release store; a rank that reads that number with an
// acquire load (announcement::sequence, counters::filled, worked, finished, chunk_counters::done) sees the data. Numbers only
// grow, except those of chunks, which start again with the announcement of a collective. No rank overwrites data before every
// reader has published, in its own number, that it is past it; if that follows from other waits, a comment there says why.

namespace muster::shm {

/// Two lines: processors fetch them in pairs.
inline constexpr std::size_t apart = 128;

/// The places of a rank's tensors, for collectives whose input does not travel with the announcement.
struct tensor_places {
    std::uint64_t in = 0;  ///< address, in the rank's own memory
    std::uint64_t out = 0;
    shared_place in_shared;  ///< if others can map them
    shared_place out_shared;
};

/// The announcement of a collective by a rank that starts it. Each rank has two, for even and odd numbers. It starts collective k
/// only when it has finished k-1; for that every rank had started k-1, and so had finished k-2 and had read what was announced
/// for k-2.
struct alignas(apart) announcement {
    std::atomic<std::uint64_t> sequence;  ///< of the collective, from 1
    std::uint64_t signature;              ///< what must be equal on all ranks, see argument_checks.hpp
    std::uint64_t count;                  ///< elements; must be equal too
    union {
        tensor_places tensors{};
        std::array<std::byte, 40>
            inlined;  ///< the input itself, if it is that small and all ranks' travel: one cache line carries all of it
    };
};
static_assert(sizeof(announcement) == apart && std::atomic<std::uint64_t>::is_always_lock_free);

/// The progress of a rank after the announcements.
struct alignas(apart) counters {
    std::atomic<std::uint64_t> filled;    ///< rounds so far of all collectives whose input lies in the segment
    std::atomic<std::uint64_t> worked;    ///< rounds of which this rank needs no other rank's input any more
    std::atomic<std::uint64_t> finished;  ///< the last collective for which this rank needs no other rank's memory any more
};

/// The chunks of a reduction. A rank that has time first takes those of its share, then those of the others'. So no rank
/// waits for a rank that has lost its processor before it took one. Each rank has two of these, like announcements, from which it
/// also knows that nobody takes chunks of two collectives ago when it sets them to 0.
struct alignas(apart) chunk_counters {
    std::atomic<std::uint64_t> claimed;           ///< taken of this rank's share, by any rank; may exceed the number of chunks
    alignas(64) std::atomic<std::uint64_t> done;  ///< done by this rank, of any share
    std::atomic<std::uint64_t> joined;            ///< the last collective of which this rank began to take chunks
};
static_assert(sizeof(chunk_counters) == apart);

/// The state of a rank in its communicator.
enum class standing : std::uint32_t { member, left, failed };

/// A rank's entry in the segment, written at the rendezvous and read when something is wrong.
struct alignas(apart) station {
    process_name who;
    process_token token;              ///< proves that memory or a file is this rank's
    std::uint64_t token_address = 0;  ///< address of as_held(token) in the rank's memory; others try to read it
    shared_place token_place;         ///< of a shared buffer; others try to map it
    std::atomic<standing> state = standing::member;
    std::atomic<std::int32_t> culprit = -1;    ///< of a failed rank: the rank at fault, perhaps itself; -1 if nobody is
    std::atomic<std::uint32_t> asleep = 0;     ///< it waits for its bell to change, if ranks share processors
    std::atomic<std::uint32_t> bell = 0;       ///< a futex that all ranks may ring
    std::atomic<std::int32_t> processor = -1;  ///< the one it ran on at its last announcement, if ranks share processors
    std::atomic<std::uint32_t> measured = 0;   ///< steps done of the measurement of distances
    std::atomic<std::uint32_t> streams = ~0u;  ///< of rank 0: its choice for all, see store_choice
    world_record record;
};

/// Sizes that all ranks of a segment agree on; offsets count from the start of a rank's region. Pure.
struct geometry {
    std::size_t ranks = 1;
    std::size_t payload_bytes = std::size_t{128} << 10;  ///< largest input that travels with its announcement, except:
    std::size_t crowd_most = std::size_t{512} << 10;     ///< … one rank's input to a reduction, if ranks share processors
    std::size_t window_bytes = std::size_t{512} << 10;   ///< of a rank's input that a round takes
    std::size_t gathered_bytes = std::size_t{8} << 20;   ///< of all ranks' inputs, left in their windows at once
    std::size_t gathered_most = std::size_t{1} << 20;  ///< … of one rank's: the kernel copies what is beyond a second-level cache
    std::size_t pair_bytes = std::size_t{128} << 10;  ///< of a tensor that a round of a pairwise exchange takes
    bool operator==(geometry const&) const = default;

    /// Returns the size of one share in a round of a reduction, in whole lines: every rank's window holds one for each rank.
    std::size_t share_bytes() const noexcept { return (window_bytes + 64 * ranks - 1) / (64 * ranks) * 64; }

    /// Returns the largest input that a window takes as a whole.
    std::size_t largest_gathered() const noexcept {
        return std::max(window_bytes, std::min(gathered_most, gathered_bytes / ranks));
    }

    /// Returns the largest input to a reduction that travels with its announcement if ranks share processors. Every rank then reduces all of it, which with
    /// many ranks takes longer than the two waits that it saves.
    std::size_t largest_in_a_crowd() const noexcept {
        std::size_t const few = (std::size_t{8} << 20) / ranks / ranks, many = (std::size_t{256} << 10) / ranks;
        return std::min(crowd_most, std::max(few, many));
    }

    std::size_t payload_size() const noexcept { return whole_pages(std::max(payload_bytes, largest_in_a_crowd())); }

    /// Returns the room for the result of one share.
    std::size_t result_size() const noexcept { return whole_pages(std::max(share_bytes(), largest_gathered() / ranks + 128)); }

    std::size_t pairs_at() const noexcept {
        return sizeof(station) + 2 * sizeof(announcement) + 2 * sizeof(chunk_counters) + sizeof(counters);
    }
    std::size_t payloads_at() const noexcept {
        return whole_pages(pairs_at() + ranks * (sizeof(announcement) + sizeof(counters)));
    }
    std::size_t windows_at() const noexcept { return payloads_at() + 2 * payload_size(); }
    std::size_t results_at() const noexcept { return windows_at() + 2 * window_size(); }
    std::size_t pair_buffers_at() const noexcept { return results_at() + 2 * result_size(); }
    std::size_t region_bytes() const noexcept { return pair_buffers_at() + 2 * whole_pages(pair_bytes); }
    std::size_t total_bytes() const noexcept { return ranks * region_bytes(); }

    std::size_t window_size() const noexcept { return whole_pages(std::max(largest_gathered(), share_bytes() * ranks)); }
};

/// One rank's part of the segment. It is a view that computes its addresses once.
class region {
  public:
    region() noexcept = default;
    region(std::byte* base, geometry const& sizes) noexcept
        : base_(base),
          pairs_(base + sizes.pairs_at()),
          payloads_(base + sizes.payloads_at()),
          windows_(base + sizes.windows_at()),
          results_(base + sizes.results_at()),
          pair_buffers_(base + sizes.pair_buffers_at()),
          payload_step_(sizes.payload_size()),
          window_step_(sizes.window_size()),
          result_step_(sizes.result_size()),
          pair_step_(whole_pages(sizes.pair_bytes)),
          ranks_(sizes.ranks) {}

    /// Constructs the objects in this rank's own region, whose bytes are zero. Call it before any other rank looks.
    void construct() const noexcept {
        new (base_) station{};
        for (std::size_t i = 0; i < 2; ++i) new (base_ + announcements_at + i * sizeof(announcement)) announcement{};
        for (std::size_t i = 0; i < 2; ++i) new (base_ + chunks_at + i * sizeof(chunk_counters)) chunk_counters{};
        new (base_ + counters_at) counters{};
        for (std::size_t i = 0; i < ranks_; ++i) {
            new (pairs_ + i * pair_stride) announcement{};
            new (pairs_ + i * pair_stride + sizeof(announcement)) counters{};
        }
    }

    station& here() const noexcept { return *object<station>(base_); }
    announcement& announced(std::uint64_t sequence) const noexcept {
        return *object<announcement>(base_ + announcements_at + sequence % 2 * sizeof(announcement));
    }
    chunk_counters& chunks(std::uint64_t sequence) const noexcept {
        return *object<chunk_counters>(base_ + chunks_at + sequence % 2 * sizeof(chunk_counters));
    }
    counters& progress() const noexcept { return *object<counters>(base_ + counters_at); }
    /// Returns this rank's announcement to `other` alone.
    announcement& announced_to(std::size_t other) const noexcept { return *object<announcement>(pairs_ + other * pair_stride); }
    counters& progress_with(std::size_t other) const noexcept {
        return *object<counters>(pairs_ + other * pair_stride + sizeof(announcement));
    }

    std::byte* payload(std::uint64_t sequence) const noexcept { return payloads_ + sequence % 2 * payload_step_; }
    std::byte* window(std::uint64_t round) const noexcept { return windows_ + round % 2 * window_step_; }
    std::byte* result(std::uint64_t round) const noexcept { return results_ + round % 2 * result_step_; }
    std::byte* pair_buffer(std::uint64_t round) const noexcept { return pair_buffers_ + round % 2 * pair_step_; }

  private:
    static constexpr std::size_t announcements_at = sizeof(station);
    static constexpr std::size_t chunks_at = announcements_at + 2 * sizeof(announcement);
    static constexpr std::size_t counters_at = chunks_at + 2 * sizeof(chunk_counters);
    static constexpr std::size_t pair_stride = sizeof(announcement) + sizeof(counters);
    template <typename T>
    static T* object(std::byte* at) noexcept {
        return std::launder(reinterpret_cast<T*>(at));
    }

    std::byte* base_ = nullptr;
    std::byte *pairs_ = nullptr, *payloads_ = nullptr, *windows_ = nullptr, *results_ = nullptr, *pair_buffers_ = nullptr;
    std::size_t payload_step_ = 0, window_step_ = 0, result_step_ = 0, pair_step_ = 0, ranks_ = 0;
};

}  // namespace muster::shm
