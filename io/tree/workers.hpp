// Threads that share the items of a piece of work: run it, pass on the first failure.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <ctime>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace muster {

/// Calls `work(thread, item)` once for each item below `items`, on up to `threads` threads, in about the order of the items. The
/// first exception stops the rest and is thrown here. `meanwhile`, if given, is called on the calling thread ten times a second.
template <typename Work>
void in_parallel(std::size_t items, int threads, Work&& work, std::function<void()> const& meanwhile = {}) {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::condition_variable ended;
    std::exception_ptr failure;
    auto const count = std::min(items, static_cast<std::size_t>(threads < 1 ? 1 : threads));
    std::size_t running = count;
    auto const run = [&](int thread) {
        try {
            for (std::size_t i = next++; i < items; i = next++) work(thread, i);
        } catch (...) {
            next = items;
            std::lock_guard const lock(mutex);
            if (!failure) failure = std::current_exception();
        }
        std::lock_guard const lock(mutex);
        --running;
        ended.notify_all();
    };
    if (count == 1 && !meanwhile) {
        run(0);
    } else {
        std::vector<std::jthread> all;
        all.reserve(count);
        for (std::size_t i = 0; i < count; ++i) all.emplace_back(run, static_cast<int>(i));
        std::unique_lock lock(mutex);
        while (!ended.wait_for(lock, std::chrono::milliseconds(100), [&] { return running == 0; })) {
            lock.unlock();
            if (meanwhile) meanwhile();
            lock.lock();
        }
    }
    if (failure) std::rethrow_exception(failure);
}

// A gate for threads that copy: lets in as many as the processors can serve, and more while they wait for the source.

/// Says how long a thread's calls took, and how long it worked in them.
class wait_share {
  public:
    /// Times the calls until it goes; nothing without a share.
    class watch {
      public:
        explicit watch(wait_share* share) noexcept : share_(share) {
            if (share_) share_->add(-1);
        }
        ~watch() {
            if (share_) share_->add(1);
        }
        watch(watch const&) = delete;
        watch& operator=(watch const&) = delete;

      private:
        wait_share* share_;
    };

    /// More than half of the time was no work.
    bool mostly_waited() const noexcept { return wall_ > 2 * worked_; }

  private:
    void add(int sign) noexcept {
        wall_ += sign * now(CLOCK_MONOTONIC);
        worked_ += sign * now(CLOCK_THREAD_CPUTIME_ID);
    }
    static double now(clockid_t clock) noexcept {
        timespec t{};
        ::clock_gettime(clock, &t);
        return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
    }
    double wall_ = 0, worked_ = 0;
};

/// A source that answers from memory is copied fastest by as many threads as there are processors: more of them evict one another's
/// blocks from the caches. One that makes its readers wait, such as a parallel file system, is read fastest by many at once. Thread
/// safe.
class thread_gate {
  public:
    thread_gate(int processors, int threads) : least_(std::clamp(processors, 1, threads)), most_(threads), allowed_(least_) {}

    /// Measures a thread's stay inside. `reading` takes the times of its reads: where they mostly waited, twice the number of threads is allowed
    /// after it, else one less.
    class stay {
      public:
        explicit stay(thread_gate& gate) : gate_(gate) { gate_.enter(); }
        ~stay() { gate_.leave(reading.mostly_waited()); }
        stay(stay const&) = delete;
        stay& operator=(stay const&) = delete;

        wait_share reading;

      private:
        thread_gate& gate_;
    };

    int allowed() const {
        std::lock_guard const lock(mutex_);
        return allowed_;
    }

  private:
    void enter() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return inside_ < allowed_; });
        ++inside_;
    }
    void leave(bool waited) {
        std::lock_guard const lock(mutex_);
        --inside_;
        allowed_ = waited ? std::min(most_, 2 * allowed_) : std::max(least_, allowed_ - 1);
        changed_.notify_all();
    }

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    int const least_, most_;
    int allowed_;
    int inside_ = 0;
};

}  // namespace muster
