// The schedule of one collective over shared memory, from its start to its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/backend/collective_backend.hpp"
#include "comm/shm/shm_world.hpp"

namespace muster::shm {

// Sizes by which an operation's schedule is chosen and cut.

/// One call does at most this much work.
inline constexpr std::size_t budget_bytes = std::size_t{4} << 20;
inline constexpr std::size_t page_bytes = 4096;

/// In all schedules a rank announces its collective, and compares the announcements of all others, before it writes anything; a rank that differs
/// makes all of them fail. Then, by size:
/// - whole: the input came with the announcement; every rank reduces, or copies out, all of it. One wait. From 8 KiB on a rank lends what lies in
///   shared buffers instead: if all ranks lend, they reduce in chunks; otherwise those that do let it travel after all, for one more wait.
/// - chunks, for larger reductions and broadcasts: a rank that has time reads a chunk of all ranks' input, reduces it, and writes
///   the result to all outputs while it is still in its cache. It reads and writes what lies in shared buffers in place. The
///   owner leaves other tensors in the segment, from where they are fetched, if they are small; else the kernel copies them from
///   and to the other's memory.
/// - direct, for other large collectives whose tensors all lie in shared buffers: each rank copies what it gets from the
///   other's buffer.
/// - staged, for those whose tensors do not, for reductions where the kernel forbids to read others' memory, and for those up to 1 MiB of ranks with a
///   processor each: in rounds through windows in the segment, two in turn, so that ranks fill one while they work on the other. Two copies that stay
///   in the caches take less time than one by the kernel, which looks up every page.
/// All combine in the order of the ranks: every way and every rank gives the same bits.
class shm_operation {
  public:
    void begin(collective const& what) {
        what_ = what;
        stage_ = stage::announce;
        scan_ = 0;
        is_ahead_ = false;
    }

    /// Advances without waiting; returns whether it has finished. Throws comm_error if the ranks' arguments differ or one is
    /// found dead.
    bool advance(world& all);

    /// Returns whether others may know of it.
    bool announced() const noexcept { return stage_ != stage::announce; }
    std::uint64_t sequence() const noexcept { return sequence_; }

    /// Returns whether it has work left that needs no other rank.
    bool works() const noexcept { return stage_ == stage::chunks || stage_ == stage::direct; }

    /// Returns a number that changes whenever it advances.
    std::uint64_t steps() const noexcept {
        return static_cast<std::uint64_t>(stage_) + sequence_ + static_cast<std::uint64_t>(scan_) + filled_ + worked_ + drained_ +
               next_ + static_cast<std::uint64_t>(from_ + turn_);
    }

    /// Returns whether it waits for that rank now.
    bool waits_for(world const& all, int rank) const noexcept;

    /// Returns the ranks that it waits for now.
    std::vector<int> missing(world const& all) const;

  private:
    enum class stage { announce, match, lent, chunks, chunks_end, direct, staged, leave, pair_match, pair_rounds, pair_leave };
    enum class way { whole, gathered, mapped, direct, staged };  // of a reduction
    struct pull {
        std::size_t from = 0;  // bytes within the other rank's input
        std::size_t bytes = 0;
        std::size_t to = 0;  // bytes within `out`
    };

    bool reduces() const noexcept {
        return what_.what == collective::kind::allreduce || what_.what == collective::kind::reducescatter;
    }
    bool broadcasts() const noexcept { return what_.what == collective::kind::broadcast; }
    std::size_t element_bytes() const noexcept { return size_of(what_.in.type); }
    std::size_t limit(world const& all) const noexcept;
    std::size_t input_bytes(world const& all, int rank) const noexcept;
    bool is_lent(world const& all) const noexcept;
    bool anyone_lends(world const& all) const noexcept;
    std::byte const* input_at(world const& all, int rank) const noexcept;
    std::size_t largest_input(world const& all) const noexcept;
    element_range share(world const& all, int rank) const noexcept;
    pull pull_from(world const& all, int rank) const noexcept;
    std::byte* in() const noexcept { return static_cast<std::byte*>(what_.in.data); }
    std::byte* out() const noexcept { return static_cast<std::byte*>(what_.out.data); }

    template <typename Of>
    bool all_reached(world const& all, std::uint64_t number, Of of) noexcept;
    bool all_announced(world const& all) noexcept;

    bool announce(world& all);
    bool fill_own_window(world& all) noexcept;
    bool match(world& all);
    void check_announcements(world const& all) const;
    void check_counts(world const& all) const;
    void finish_whole(world& all);
    void copy_own(world const& all) const noexcept;

    /// Adds the time that a rank works to the time of this collective, if that is measured.
    class timer {
      public:
        explicit timer(shm_operation& of) noexcept : of_(of), begin_(of.is_timed_ ? ticks() : 0) {}
        timer(timer const&) = delete;
        timer& operator=(timer const&) = delete;
        ~timer() {
            if (of_.is_timed_) of_.ticks_ += ticks() - begin_;
        }

      private:
        shm_operation& of_;
        std::uint64_t begin_;
    };
    void copy_for_others(void* to, void const* from, std::size_t bytes) noexcept;
    void choose_stores(world const& all) noexcept;
    void note_time(world& all) const noexcept;

    way way_of(world const& all) const noexcept;
    bool gathers(world const& all) const noexcept;
    bool everything_is_shared(world const& all) const noexcept;
    void find_mapped(world& all, bool must) const;

    void start_chunks(world& all, way how);
    bool advance_chunks(world& all);
    bool end_chunks(world& all);
    bool chunks_are_done(world const& all) const noexcept;
    std::size_t chunk_elements(world const& all) const noexcept;
    std::size_t chunks_in(world const& all, element_range const& whole) const noexcept;
    element_range chunk_of(world const& all, int owner, std::size_t number) const noexcept;
    std::size_t index_of(world const& all, int owner, std::size_t number) const noexcept {
        return static_cast<std::size_t>(owner) * chunks_in(all, share(all, 0)) + number;
    }
    void do_chunk(world& all, int owner, element_range const& chunk);
    bool serves(world const& all, int owner) const noexcept;
    void copy_chunk(world& all, int owner, element_range const& chunk);
    void* chunk_target(world& all, int rank, int owner, element_range const& chunk) const noexcept;
    void check_membership(world const& all) const;
    void fetch_results(world& all) const noexcept;

    void start_direct(world& all);
    bool advance_direct(world& all);

    void start_staged(world& all) noexcept;
    bool advance_staged(world& all);
    std::size_t slot_bytes(world const& all) const noexcept;
    std::size_t longest_stream(world const& all) const noexcept;
    void fill_slots(world& all, std::uint64_t round) const noexcept;
    void take(world const& all, int rank, std::uint64_t round) const noexcept;
    bool goes_in_rounds(world const& all) const noexcept;
    bool fill_ahead(world& all);
    void fill(world& all, std::uint64_t round) noexcept;
    void work(world& all, std::uint64_t round) noexcept;
    void drain(world& all, std::uint64_t round) noexcept;
    std::byte* result_of(world const& all, int rank, std::uint64_t round) const noexcept;
    element_range piece_of(world const& all, int rank, std::uint64_t round) const noexcept;

    void announce_pair(world& all);
    bool match_pair(world& all);
    bool advance_pair(world& all);
    std::size_t pair_rounds(world const& all, std::size_t bytes) const noexcept;

    collective what_;
    stage stage_ = stage::announce;
    std::uint64_t sequence_ = 0;
    int scan_ = 0;  // the first rank not yet seen to have come

    bool streams_ = false;   // writes what others read past the caches
    bool is_timed_ = false;  // see store_choice
    std::uint64_t ticks_ = 0;

    way way_ = way::whole;
    int turn_ = 0;             // chunks: how many ranks' shares are exhausted
    std::uint64_t total_ = 0;  // … of all ranks
    std::vector<bool> own_;    // gathered: the chunks that this rank did

    std::size_t next_ = 0;  // direct: finished bytes of the pull
    int from_ = 0;          // direct: the rank pulled from

    std::uint64_t first_ = 0, end_ = 0;                    // staged: rounds
    std::uint64_t filled_ = 0, worked_ = 0, drained_ = 0;  // … the next of each
    bool is_ahead_ = false;                                // … the first window was filled before the ranks had met
};

/// Throws comm_error (errc::peer_failed) for a copy from or to another rank's memory that ended with `code`.
[[noreturn]] void throw_copy_failed(world const& all, int other, char const* call, int code);

}  // namespace muster::shm
