// Threads that share the items of a piece of work: run it, pass on the first failure.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
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

}  // namespace muster
