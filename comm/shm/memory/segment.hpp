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

// How the memory is ordered. Every value but chunk_counters::claimed has one writer, the rank in whose region it lies. A rank
// first writes data with plain stores, then publishes a number with a release store; who reads that number with an acquire load
// (announcement::sequence, counters::filled, worked, finished, chunk_counters::done) sees the data. Numbers only grow, but those
// of chunks, which begin anew with the announcement of a collective. Nobody writes data again before every reader has published,
// in a number of its own, that it is past it; where that follows from other waits, a comment there says why.

namespace muster::shm {

/// Two lines: processors fetch them in pairs.
inline constexpr std::size_t apart = 128;

/// Where a rank's tensors are, for collectives whose input does not travel with the announcement.
struct tensor_places {
    std::uint64_t in = 0;  ///< address, in the rank's own memory
    std::uint64_t out = 0;
    shared_place in_shared;  ///< where others can map them
    shared_place out_shared;
};

/// The announcement of a collective by a rank that starts it. Of each rank there are two, for even and odd numbers: a rank starts
/// collective k only when it has finished k-1, for which every rank had to have started k-1, that is finished k-2 and with it the
/// reading of what was announced for k-2.
struct alignas(apart) announcement {
    std::atomic<std::uint64_t> sequence;  ///< of the collective, from 1
    std::uint64_t signature;              ///< what must be equal on all ranks, see argument_checks.hpp
    std::uint64_t count;                  ///< elements; the same
    union {
        tensor_places tensors{};
        std::array<std::byte, 40>
            inlined;  ///< the input itself, if it is that small and all ranks' travel: one cache line carries all
    };
};
static_assert(sizeof(announcement) == apart && std::atomic<std::uint64_t>::is_always_lock_free);

/// How far a rank is with what follows the announcements.
struct alignas(apart) counters {
    std::atomic<std::uint64_t> filled;    ///< rounds of all collectives so far whose input lies in the segment
    std::atomic<std::uint64_t> worked;    ///< rounds whose input of other ranks this rank needs no more
    std::atomic<std::uint64_t> finished;  ///< the last collective after which this rank needs no other's memory
};

/// The chunks of a reduction. A rank that has time takes them: first those of its own share, then of the others'. So no rank
/// waits for a rank that has lost its processor before it took one. Of each rank there are two, as of announcements, by which a
/// rank also knows that nobody takes chunks of two collectives ago when it sets them to 0.
struct alignas(apart) chunk_counters {
    std::atomic<std::uint64_t> claimed;           ///< of this rank's share, by anybody; may go beyond their number
    alignas(64) std::atomic<std::uint64_t> done;  ///< of any share, by this rank
    std::atomic<std::uint64_t> joined;            ///< the last collective of which this rank began to take chunks
};
static_assert(sizeof(chunk_counters) == apart);

/// How a rank stands to its communicator.
enum class standing : std::uint32_t { member, left, failed };

/// A rank's entry in the segment: written at the rendezvous, read when something is wrong.
struct alignas(apart) station {
    process_name who;
    process_token token;              ///< what proves that memory or a file is this rank's
    std::uint64_t token_address = 0;  ///< of as_held(token) in the rank's own memory: to probe whether others may read it
    shared_place token_place;         ///< of a shared buffer, for the same
    std::atomic<standing> state = standing::member;
    std::atomic<std::int32_t> culprit = -1;    ///< of a failed rank: whose fault it was; -1 if nobody's, its own rank if its own
    std::atomic<std::uint32_t> asleep = 0;     ///< it waits for its bell to change, where ranks share processors
    std::atomic<std::uint32_t> bell = 0;       ///< a futex that all ranks may ring
    std::atomic<std::int32_t> processor = -1;  ///< that it ran on at its last announcement, where ranks share processors
    std::atomic<std::uint32_t> measured = 0;   ///< steps of the measurement of distances that it has done
    std::atomic<std::uint32_t> streams = ~0u;  ///< of rank 0: what it has chosen for all, see store_choice
    world_record record;
};

/// Sizes that all ranks of a segment agree on; offsets are from a rank's own region. Pure.
struct geometry {
    std::size_t ranks = 1;
    std::size_t payload_bytes = std::size_t{128} << 10;  ///< largest input that travels with its announcement, except:
    std::size_t crowd_most = std::size_t{512} << 10;     ///< … of one rank's input to a reduction, where ranks share processors
    std::size_t window_bytes = std::size_t{512} << 10;   ///< of a rank's input that a round takes
    std::size_t gathered_bytes = std::size_t{8} << 20;   ///< of all ranks' inputs that they leave in their windows at once
    std::size_t gathered_most = std::size_t{1} << 20;  ///< … of one rank's: the kernel copies what is beyond a second-level cache
    std::size_t pair_bytes = std::size_t{128} << 10;  ///< of a tensor that a round of a pairwise exchange takes
    bool operator==(geometry const&) const = default;

    /// Of one share in a round of a reduction: every rank's window holds one for each rank. Whole lines.
    std::size_t share_bytes() const noexcept { return (window_bytes + 64 * ranks - 1) / (64 * ranks) * 64; }

    /// Largest input that is left in a window as a whole.
    std::size_t largest_gathered() const noexcept {
        return std::max(window_bytes, std::min(gathered_most, gathered_bytes / ranks));
    }

    /// Largest input to a reduction that travels with its announcement where ranks share processors. Every rank then reduces all of it, which for many ranks
    /// is more than the two waits that it saves.
    std::size_t largest_in_a_crowd() const noexcept {
        std::size_t const few = (std::size_t{8} << 20) / ranks / ranks, many = (std::size_t{256} << 10) / ranks;
        return std::min(crowd_most, std::max(few, many));
    }

    std::size_t payload_size() const noexcept { return whole_pages(std::max(payload_bytes, largest_in_a_crowd())); }

    /// Room for the result of one share.
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

/// One rank's part of the segment. A view; its places are worked out once.
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

    /// Makes the objects in this rank's own region, whose bytes are zero. Before any other rank looks.
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
    /// This rank's announcement to `other` alone.
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
