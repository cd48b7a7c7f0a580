#include "io/loader/prefetcher.hpp"

#include <pthread.h>
#include <signal.h>

#include <utility>

#include "base/error.hpp"

namespace muster {

prefetcher::prefetcher(std::size_t slots, work prepare) : slots_(slots), prepare_(std::move(prepare)) {
    expect(slots_ >= 2, "a slot for the consumer and one to fill");
    // A new thread inherits the mask: signals are for the program's own threads.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        thread_ = std::thread([this] { loop(); });
    } catch (...) {
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

prefetcher::~prefetcher() {
    {
        std::lock_guard const lock(mutex_);
        stop_ = true;
    }
    to_worker_.notify_one();
    thread_.join();
}

void prefetcher::start(std::size_t items) {
    {
        std::lock_guard const lock(mutex_);
        expect(!busy_ && prepared_ == items_, "the run before to be over");
        items_ = items;
        prepared_ = taken_ = released_ = 0;
        filling_ = true;
        failure_ = nullptr;
    }
    to_worker_.notify_one();
}

std::optional<std::size_t> prefetcher::next() {
    std::unique_lock lock(mutex_);
    released_ = taken_;
    if (!filling_ && (prepared_ - released_) * 2 <= slots_) {
        filling_ = true;
        if (worker_waits_) to_worker_.notify_one();
    }
    if (taken_ == items_ && !failure_) return std::nullopt;
    consumer_waits_ = true;
    to_consumer_.wait(lock, [&] { return prepared_ > taken_ || failure_ != nullptr; });
    consumer_waits_ = false;
    if (prepared_ == taken_) {  // what was ready before the failure has been delivered
        items_ = prepared_ = taken_ = released_ = 0;
        std::rethrow_exception(std::exchange(failure_, nullptr));
    }
    return taken_++ % slots_;
}

void prefetcher::abandon() {
    std::unique_lock lock(mutex_);
    items_ = prepared_;
    consumer_waits_ = true;
    to_consumer_.wait(lock, [&] { return !busy_; });
    consumer_waits_ = false;
    items_ = prepared_ = taken_ = released_ = 0;
    failure_ = nullptr;
}

bool prefetcher::may_prepare() const {
    return filling_ && prepared_ < items_ && prepared_ - released_ < slots_;
}

void prefetcher::loop() {
    std::unique_lock lock(mutex_);
    while (true) {
        worker_waits_ = true;
        to_worker_.wait(lock, [&] { return stop_ || may_prepare(); });
        worker_waits_ = false;
        if (stop_) return;
        std::size_t const item = prepared_;
        busy_ = true;
        lock.unlock();
        std::exception_ptr failure;
        try {
            prepare_(item, item % slots_);
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        busy_ = false;
        if (failure) {
            failure_ = failure;
            items_ = prepared_;
        } else if (prepared_ < items_) {  // else it was abandoned meanwhile
            ++prepared_;
        }
        if (prepared_ - released_ == slots_) filling_ = false;
        if (consumer_waits_) to_consumer_.notify_one();
    }
}

}  // namespace muster
