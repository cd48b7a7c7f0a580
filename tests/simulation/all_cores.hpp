// Work on numbered items by all cores, with its progress on standard error.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

namespace muster::simulation {

inline unsigned cores() {
    return std::max(std::thread::hardware_concurrency(), 1u);
}

/// Calls `work(item, core)` for each of so many items, `at_once` in a row by one core, until one call returns false: items before that one are done, or under way.
/// Writes how many are done, at most every 5 seconds.
template <typename Work>
void on_all_cores(std::uint64_t count, std::uint64_t at_once, Work const& work) {
    std::atomic<std::uint64_t> next{0};
    std::atomic<bool> stop{false};
    std::mutex guard;
    std::uint64_t done = 0;
    auto const began = std::chrono::steady_clock::now();
    auto told = began;
    auto const note = [&](std::uint64_t more) {
        std::scoped_lock const lock(guard);
        done += more;
        auto const now = std::chrono::steady_clock::now();
        if (now - told < std::chrono::seconds(5)) return;
        told = now;
        fmt::print(stderr, "{} of {} in {:.0f} s\n", done, count, std::chrono::duration<double>(now - began).count());
    };
    auto const take = [&](unsigned core) {
        while (!stop) {
            auto const begin = next.fetch_add(at_once);
            if (begin >= count) return;
            auto const end = std::min(begin + at_once, count);
            for (auto item = begin; item < end && !stop; ++item)
                if (!work(item, core)) stop = true;
            if (!stop) note(end - begin);
        }
    };
    std::vector<std::thread> others;
    for (unsigned core = 1; core < cores(); ++core) others.emplace_back(take, core);
    take(0);
    for (auto& one : others) one.join();
}

}  // namespace muster::simulation
