#include "io/loader/prefetcher.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "io/loader/reader_threads.hpp"

namespace muster {

prefetcher::prefetcher(std::size_t slots, work prepare, std::size_t threads)
    : slots_(slots), prepare_(std::move(prepare)), ready_(slots, 0) {
    expect(slots_ >= 2, "a slot for the consumer and one to fill");
    expect(threads >= 1, "a thread");
    threads_ = start_readers(
        threads, [this] { loop(); }, [this] { end_loops(); });
}

prefetcher::~prefetcher() {
    end_loops();
    for (std::thread& each : threads_) each.join();
}

void prefetcher::end_loops() noexcept {
    std::lock_guard const lock(mutex_);
    stop_ = true;
    to_workers_.notify_all();
}

void prefetcher::start(std::size_t items) {
    {
        std::lock_guard const lock(mutex_);
        expect(busy_ == 0 && taken_ == items_, "the run before to be over");
        items_ = items;
        claimed_ = taken_ = released_ = 0;
        std::fill(ready_.begin(), ready_.end(), 0);
        filling_ = true;
        failure_ = nullptr;
    }
    to_workers_.notify_all();
}

std::optional<std::size_t> prefetcher::next() {
    std::unique_lock lock(mutex_);
    released_ = taken_;
    if (!filling_ && (claimed_ - released_) * 2 <= slots_) {
        filling_ = true;
        if (workers_waiting_ > 0) to_workers_.notify_all();
    }
    if (taken_ == items_ && !failure_) return std::nullopt;
    consumer_waits_ = true;
    to_consumer_.wait(lock, [&] { return taken_ == items_ || ready_[taken_ % slots_] != 0; });
    if (taken_ == items_) {  // what came before the failure has been delivered
        to_consumer_.wait(lock, [&] { return busy_ == 0; });
        consumer_waits_ = false;
        items_ = claimed_ = taken_ = released_ = 0;
        std::rethrow_exception(std::exchange(failure_, nullptr));
    }
    consumer_waits_ = false;
    ready_[taken_ % slots_] = 0;
    return taken_++ % slots_;
}

void prefetcher::abandon() {
    std::unique_lock lock(mutex_);
    items_ = claimed_;  // nothing more is begun
    consumer_waits_ = true;
    to_consumer_.wait(lock, [&] { return busy_ == 0; });
    consumer_waits_ = false;
    items_ = claimed_ = taken_ = released_ = 0;
    failure_ = nullptr;
}

bool prefetcher::may_prepare() const {
    return filling_ && claimed_ < items_ && claimed_ - released_ < slots_;
}

void prefetcher::loop() {
    std::unique_lock lock(mutex_);
    while (true) {
        ++workers_waiting_;
        to_workers_.wait(lock, [&] { return stop_ || may_prepare(); });
        --workers_waiting_;
        if (stop_) return;
        std::size_t const item = claimed_++;
        if (claimed_ - released_ == slots_) filling_ = false;
        ++busy_;
        lock.unlock();
        std::exception_ptr failure;
        try {
            prepare_(item, item % slots_);
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        --busy_;
        if (!failure) {
            ready_[item % slots_] = 1;
        } else if (item < items_) {  // `failure_` is that of the lowest that failed
            failure_ = failure;
            items_ = item;
        }
        if (consumer_waits_) to_consumer_.notify_one();
    }
}

}  // namespace muster
