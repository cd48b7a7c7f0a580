#include "io/copy/pack_exchange.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/backend/keep_forever.hpp"
#include "comm/fail_together.hpp"
#include "io/copy/pack_io.hpp"
#include "io/tree/aligned_bytes.hpp"

namespace muster {

namespace {

/// Each rank's part of a round begins with a header, which says whether something failed there.
constexpr std::size_t header_bytes = 64;
/// Parts begin at multiples of this: the kernel copies from other addresses at half the speed.
constexpr std::size_t part_alignment = 64;
/// All ranks together send at most this in one round; with many nodes a pack goes in several slices.
constexpr std::uint64_t most_bytes_a_round = std::uint64_t{64} << 20;
constexpr std::size_t rounds_under_way = 2;

/// Memory for the rounds that are sent or still written.
class round_buffers {
  public:
    round_buffers(std::size_t count, std::size_t bytes) : shared_(std::make_shared<shared>()) {
        shared_->free.reserve(count);
        for (std::size_t i = 0; i < count; ++i) shared_->free.emplace_back(bytes);
    }
    /// Waits for one; it is free again when its last owner is gone.
    std::shared_ptr<std::byte> take() {
        std::unique_lock lock(shared_->mutex);
        shared_->changed.wait(lock, [&] { return !shared_->free.empty(); });
        auto* const memory = new aligned_bytes(std::move(shared_->free.back()));
        shared_->free.pop_back();
        std::shared_ptr<aligned_bytes> const owner(memory, [home = shared_](aligned_bytes* back) {
            std::lock_guard const locked(home->mutex);
            home->free.push_back(std::move(*back));
            delete back;
            home->changed.notify_all();
        });
        return {owner, owner->data()};
    }

  private:
    struct shared {
        std::mutex mutex;
        std::condition_variable changed;
        std::vector<aligned_bytes> free;
    };
    std::shared_ptr<shared> shared_;
};

/// Says which bytes of which packs go in which round: the same on all ranks.
class round_table {
  public:
    round_table(std::span<pack const> packs, std::size_t ranks) : packs_(packs), ranks_(ranks) {
        std::uint64_t largest = 1;
        for (pack const& one : packs) largest = std::max(largest, sent_bytes(one));
        std::uint64_t const most = std::max<std::uint64_t>(most_bytes_a_round / ranks, std::uint64_t{64} << 10);
        slices_ = static_cast<std::size_t>((largest + most - 1) / most);
        slice_bytes_ = (largest + slices_ - 1) / slices_;
    }
    std::size_t rounds() const noexcept { return (packs_.size() + ranks_ - 1) / ranks_ * slices_; }
    std::size_t pack_of(std::size_t round, std::size_t rank) const noexcept { return round / slices_ * ranks_ + rank; }
    std::size_t offset_in(std::size_t round) const noexcept { return round % slices_ * slice_bytes_; }
    std::size_t bytes_of(std::size_t round, std::size_t rank) const noexcept {
        std::size_t const number = pack_of(round, rank);
        if (number >= packs_.size()) return 0;
        std::uint64_t const all = sent_bytes(packs_[number]);
        return std::min<std::uint64_t>(slice_bytes_, all - std::min<std::uint64_t>(all, offset_in(round)));
    }
    std::size_t most_bytes() const noexcept { return ranks_ * part_of(slice_bytes_); }
    /// Returns what a rank sends in a round for so many bytes.
    static std::size_t part_of(std::uint64_t bytes) noexcept {
        return header_bytes + (bytes + part_alignment - 1) / part_alignment * part_alignment;
    }

  private:
    std::span<pack const> packs_;
    std::size_t ranks_;
    std::size_t slices_ = 1;
    std::uint64_t slice_bytes_ = 0;
};

/// One round on its way. A vector of counts stays where it is when the round is moved.
struct round {
    std::size_t number = 0;
    std::shared_ptr<std::byte> buffer;
    std::vector<std::size_t> counts;
    operation sending;
};

class exchanger {
  public:
    exchanger(communicator& nodes, exchange_work const& work)
        : nodes_(nodes),
          work_(work),
          ranks_(static_cast<std::size_t>(nodes.size())),
          me_(static_cast<std::size_t>(nodes.rank())),
          table_(work.packs, ranks_),
          buffers_(rounds_under_way + 2, table_.most_bytes()),
          reader_(work.list, work.packs, me_, ranks_, work.threads, work.bytes_read),
          writers_(work) {}

    void run() {
        std::deque<round> under_way;
        bool stopped = false;
        for (std::size_t i = 0; (i < table_.rounds() && !stopped) || !under_way.empty();) {
            if (i < table_.rounds() && !stopped && under_way.size() < rounds_under_way) {
                under_way.push_back(start(i++));
                continue;
            }
            if (work_.meanwhile) work_.meanwhile();
            try {
                under_way.front().sending.wait();
            } catch (...) {
                detail::keep_forever(std::move(under_way));  // a late rank may still write there
                throw;
            }
            stopped = deliver(under_way.front()) || stopped;
            under_way.pop_front();
        }
        try {
            writers_.finish();
        } catch (...) {
            if (!failure_) failure_ = std::current_exception();
        }
        throw_if_any_failed(nodes_, "copy to " + work_.target.path(), failure_, member_is::node);
    }

  private:
    round start(std::size_t number) {
        round next{number, buffers_.take(), {}, {}};
        std::size_t before = 0;
        for (std::size_t r = 0; r < ranks_; ++r) {
            next.counts.push_back(round_table::part_of(table_.bytes_of(number, r)));
            if (r < me_) before += next.counts.back();
        }
        std::byte* const mine = next.buffer.get() + before;
        if (!failure_) failure_ = writers_.failure();
        try {
            if (!failure_) fill(number, mine + header_bytes);
        } catch (...) {
            failure_ = std::current_exception();
        }
        std::memset(mine, failure_ ? 1 : 0, header_bytes);
        std::size_t all = 0;
        for (std::size_t const count : next.counts) all += count;
        auto const bytes = [](std::byte* at, std::size_t count) { return tensor_view{at, count, dtype::u8, memory_kind::host}; };
        next.sending = nodes_.allgather("packs", bytes(mine, next.counts[me_]), bytes(next.buffer.get(), all), next.counts);
        return next;
    }

    void fill(std::size_t number, std::byte* into) {
        std::size_t const count = table_.bytes_of(number, me_), offset = table_.offset_in(number);
        if (table_.pack_of(number, me_) >= work_.packs.size()) return;
        if (offset == 0) own_ = reader_.next();
        if (count > 0) std::memcpy(into, own_.data() + offset, count);
    }

    /// Hands the parts to the writers; true if a rank failed, which all see in the same round.
    bool deliver(round const& done) {
        bool failed = false;
        std::byte const* at = done.buffer.get();
        for (std::size_t r = 0; r < ranks_; at += done.counts[r++]) failed = failed || *at != std::byte{0};
        if (failed) return true;
        at = done.buffer.get();
        for (std::size_t r = 0; r < ranks_; at += done.counts[r++]) {
            std::size_t const count = table_.bytes_of(done.number, r);
            if (count > 0) writers_.put({table_.pack_of(done.number, r), {at + header_bytes, count}, done.buffer});
        }
        return false;
    }

    communicator& nodes_;
    exchange_work const& work_;
    std::size_t ranks_, me_;
    round_table table_;
    round_buffers buffers_;
    pack_reader reader_;
    pack_writers writers_;
    std::span<std::byte const> own_;
    std::exception_ptr failure_;
};

}  // namespace

void exchange_packs(communicator& nodes, exchange_work const& work) {
    exchanger(nodes, work).run();
}

}  // namespace muster
