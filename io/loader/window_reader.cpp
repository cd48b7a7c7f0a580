#include "io/loader/window_reader.hpp"

#include <utility>

#include "base/error.hpp"
#include "io/loader/reader_threads.hpp"

namespace muster {

namespace {

constexpr std::size_t page_bytes = 4096;

}  // namespace

window_reader::window_reader(sample_file from, shuffle_window window, std::size_t samples, std::size_t threads)
    : from_(std::move(from)), window_(window) {
    // A chunk begins where it begins within a page of the file: copies between unlike places are slower.
    slot_bytes_ = (window_.chunk_samples * from_.sample_bytes() / page_bytes + 2) * page_bytes;
    memory_ = mapped_memory::allocate(2 * window_.chunks * slot_bytes_);
    place_of_.resize(samples / window_.chunk_samples + 1);
    threads_ = start_readers(
        threads, [this] { loop(); }, [this] { end_loops(); });
}

window_reader::~window_reader() {
    end_loops();
    for (std::thread& each : threads_) each.join();
}

void window_reader::end_loops() noexcept {
    std::lock_guard const lock(mutex_);
    stop_ = true;
    to_readers_.notify_all();
}

void window_reader::start(windowed_order const& order, std::uint64_t first_sample, std::uint64_t from) {
    stop();
    std::lock_guard const lock(mutex_);
    order_ = order;
    first_sample_ = first_sample;
    current_ = from;
    next_place_ = order.places_of(from).first;
    read_[0] = read_[1] = 0;
    failure_ = nullptr;
    running_ = true;
    to_readers_.notify_all();
}

void window_reader::stop() {
    std::unique_lock lock(mutex_);
    running_ = false;
    to_consumer_.wait(lock, [&] { return busy_ == 0; });
}

void window_reader::enter(std::uint64_t w) {
    std::unique_lock lock(mutex_);
    expect(running_ && w >= current_ && w < order_->windows(), "a window that lies ahead");
    while (current_ < w) {
        // The consumer waits for what a window lacks when it is left: it is still being read into its memory, which the window after the next gets.
        to_consumer_.wait(lock, [&] { return failure_ || read_[current_ % 2] == order_->places_of(current_).count; });
        if (failure_) std::rethrow_exception(failure_);
        read_[current_ % 2] = 0;
        ++current_;
        to_readers_.notify_all();
    }
    to_consumer_.wait(lock, [&] { return failure_ || read_[w % 2] == order_->places_of(w).count; });
    if (failure_) std::rethrow_exception(failure_);
}

bool window_reader::may_read() const {
    return running_ && !failure_ && next_place_ < order_->places_of(current_ + 1).end();
}

void window_reader::loop() {
    std::unique_lock lock(mutex_);
    while (true) {
        to_readers_.wait(lock, [&] { return stop_ || may_read(); });
        if (stop_) return;
        std::uint64_t const place = next_place_++;
        ++busy_;
        lock.unlock();
        std::exception_ptr failure;
        try {
            read_chunk(place);
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        --busy_;
        if (failure)
            failure_ = failure;
        else
            ++read_[place / window_.chunks % 2];
        to_consumer_.notify_all();
    }
}

void window_reader::read_chunk(std::uint64_t place) {
    std::uint64_t const chunk = order_->chunk_at(place);
    hyperslab rows = order_->samples_of(chunk);
    rows.first += first_sample_;
    std::size_t const slot = place % (2 * window_.chunks);
    std::size_t const begin = slot * slot_bytes_ + from_.place_in_page(rows.first, page_bytes);
    from_.will_need(rows);
    from_.read(rows, memory_.bytes().data() + begin);
    place_of_[chunk] = begin;
}

}  // namespace muster
