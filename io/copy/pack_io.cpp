#include "io/copy/pack_io.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/throw_error.hpp"
#include "io/copy/chunk_io.hpp"
#include "io/dataset/checksum.hpp"

namespace muster {

namespace {

/// One pack that is arriving.
class arriving_pack {
  public:
    arriving_pack(exchange_work const& work, chunk_writer& writer, pack const& what)
        : work_(work), writer_(writer), what_(what) {}

    /// True once the pack is complete.
    bool take(std::span<std::byte const> bytes) {
        while (!bytes.empty())
            bytes = bytes.subspan(left_ > 0 || done_ < what_.pieces.size() ? take_data(bytes) : take_checksum(bytes));
        take_empty_pieces();
        if (checked_ < what_.pieces.size()) return false;
        work_.target.record(records_);
        return true;
    }

  private:
    bool wanted() const { return work_.have.needed[what_.pieces[done_].chunk] != 0; }

    void begin() {
        begun_ = true;
        left_ = what_.pieces[done_].length;
        if (wanted()) writer_.begin(what_.pieces[done_]);
    }
    void end() {
        begun_ = false;
        if (wanted()) {
            work_.have.checksums[what_.pieces[done_].chunk] = writer_.end();
            work_.bytes_written += what_.pieces[done_].length;
        }
        ++done_;
    }
    void take_empty_pieces() {
        while (done_ < what_.pieces.size() && what_.pieces[done_].length == 0) {
            begin();
            end();
        }
    }
    std::size_t take_data(std::span<std::byte const> bytes) {
        take_empty_pieces();
        if (done_ == what_.pieces.size()) return 0;
        if (!begun_) begin();
        std::size_t const count = std::min<std::uint64_t>(left_, bytes.size());
        if (wanted()) writer_.write(bytes.first(count));
        left_ -= count;
        if (left_ == 0) end();
        return count;
    }
    std::size_t take_checksum(std::span<std::byte const> bytes) {
        std::size_t const count = std::min(sizeof checksum_ - checksum_bytes_, bytes.size());
        std::memcpy(reinterpret_cast<std::byte*>(&checksum_) + checksum_bytes_, bytes.data(), count);
        checksum_bytes_ += count;
        if (checksum_bytes_ == sizeof checksum_) {
            checksum_bytes_ = 0;
            compare(what_.pieces[checked_++]);
        }
        return count;
    }
    void compare(piece const& one) {
        if (work_.have.needed[one.chunk] == 0) return;
        std::uint64_t const number = one.chunk - work_.plan.first_of(one.file);
        std::uint64_t const arrived = work_.have.checksums[one.chunk];
        if (arrived != checksum_)
            throw_error(errc::invalid_data,
                        "{}: chunk {} (from byte {}) was damaged on its way: checksum {:016x}, read {:016x}; check the network "
                        "and the memory of the nodes",
                        work_.list.files[one.file].path, number, one.offset, arrived, checksum_);
        records_.push_back({one.file, number, arrived});
    }

    exchange_work const& work_;
    chunk_writer& writer_;
    pack const& what_;
    std::size_t done_ = 0, checked_ = 0;  // pieces
    bool begun_ = false;
    std::uint64_t left_ = 0;  // of the piece begun
    std::uint64_t checksum_ = 0;
    std::size_t checksum_bytes_ = 0;
    std::vector<journal_record> records_;
};

}  // namespace

pack_writers::pack_writers(exchange_work const& work) : work_(work) {
    for (int i = 0; i < std::max(work.threads, 1); ++i) {
        queue& mine = *queues_.emplace_back(std::make_unique<queue>());
        threads_.emplace_back([this, &mine] { run(mine); });
    }
}

pack_writers::~pack_writers() {
    end_queues();
}

void pack_writers::end_queues() {
    for (auto const& one : queues_) {
        std::lock_guard const lock(one->mutex);
        one->ended = true;
        one->changed.notify_all();
    }
}

void pack_writers::put(pack_slice slice) {
    queue& its = *queues_[slice.pack % queues_.size()];
    std::lock_guard const lock(its.mutex);
    its.slices.push_back(std::move(slice));
    its.changed.notify_all();
}

std::exception_ptr pack_writers::failure() {
    std::lock_guard const lock(mutex_);
    return failure_;
}

void pack_writers::finish() {
    end_queues();
    threads_.clear();
    if (failure_) std::rethrow_exception(failure_);
}

void pack_writers::run(queue& mine) {
    std::unordered_map<std::size_t, std::unique_ptr<arriving_pack>> arriving;
    std::unordered_map<std::size_t, std::unique_ptr<chunk_writer>>
        writers;  // a pack whose slices alternate with others' needs its own
    std::vector<std::unique_ptr<chunk_writer>> spare;
    for (;;) {
        std::unique_lock lock(mine.mutex);
        mine.changed.wait(lock, [&] { return mine.ended || !mine.slices.empty(); });
        if (mine.slices.empty()) return;
        pack_slice const slice = std::move(mine.slices.front());
        mine.slices.pop_front();
        lock.unlock();
        if (failure()) continue;
        try {
            auto& pack = arriving[slice.pack];
            if (!pack) {
                auto& writer = writers[slice.pack];
                if (spare.empty()) {
                    writer = std::make_unique<chunk_writer>(work_.target, work_.list, work_.plan);
                } else {
                    writer = std::move(spare.back());
                    spare.pop_back();
                }
                pack = std::make_unique<arriving_pack>(work_, *writer, work_.packs[slice.pack]);
            }
            if (pack->take(slice.bytes)) {
                arriving.erase(slice.pack);
                spare.push_back(std::move(writers[slice.pack]));
                writers.erase(slice.pack);
            }
        } catch (...) {
            std::lock_guard const locked(mutex_);
            if (!failure_) failure_ = std::current_exception();
        }
    }
}

std::uint64_t sent_bytes(pack const& what) noexcept {
    return what.bytes + 8 * what.pieces.size();
}

pack_reader::pack_reader(file_list const& list, std::span<pack const> packs, std::size_t first, std::size_t step, int threads,
                         std::atomic<std::uint64_t>& bytes_read)
    : list_(list), packs_(packs), first_(first), step_(step), bytes_read_(bytes_read) {
    slots_.resize(static_cast<std::size_t>(threads) + 2);
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

pack_reader::~pack_reader() {
    std::lock_guard const lock(mutex_);
    ending_ = true;
    changed_.notify_all();
}

void pack_reader::read(pack const& what, slot& into, chunk_reader& source) {
    into.bytes = sent_bytes(what);
    into.memory.grow(into.bytes);
    std::byte* const bytes = into.memory.data();
    std::size_t at = 0, checksum_at = what.bytes;
    for (piece const& one : what.pieces) {
        std::span const part(bytes + at, one.length);
        source.begin(one);
        source.read(part);
        source.end();
        std::uint64_t const checksum = xxh3_64(part);
        std::memcpy(bytes + checksum_at, &checksum, 8);
        at += one.length;
        checksum_at += 8;
    }
    bytes_read_ += what.bytes;
}

void pack_reader::run() {
    std::unique_ptr<chunk_reader> source;
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return ending_ || taken_ < delivered_ + slots_.size() - 1; });
        std::size_t const mine = taken_;
        if (ending_ || first_ + mine * step_ >= packs_.size()) return;
        ++taken_;
        slot& into = slots_[mine % slots_.size()];
        lock.unlock();
        std::exception_ptr failure;
        try {
            if (!source) source = std::make_unique<chunk_reader>(list_);
            read(packs_[first_ + mine * step_], into, *source);
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        into.failure = failure;
        into.full = true;
        changed_.notify_all();
    }
}

std::span<std::byte const> pack_reader::next() {
    std::unique_lock lock(mutex_);
    if (delivered_ > 0) slots_[(delivered_ - 1) % slots_.size()].full = false;
    slot& wanted = slots_[delivered_ % slots_.size()];
    ++delivered_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return wanted.full; });
    if (wanted.failure) std::rethrow_exception(wanted.failure);
    return wanted.memory.first(wanted.bytes);
}

}  // namespace muster
