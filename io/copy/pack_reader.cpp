#include "io/copy/pack_reader.hpp"

#include <cstring>

#include "io/copy/chunk_reader.hpp"
#include "io/dataset/checksum.hpp"

namespace muster {

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
        std::uint64_t const checksum = xxh3_64({reinterpret_cast<std::uint8_t const*>(part.data()), part.size()});
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
