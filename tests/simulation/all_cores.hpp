// Work on numbered items by all cores.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace muster::simulation {

inline unsigned cores() {
    return std::max(std::thread::hardware_concurrency(), 1u);
}

/// Calls `work(item, core)` for each of so many items, `at_once` in a row by one core, until one call returns false: items before that one are done, or under way.
template <typename Work>
void on_all_cores(std::uint64_t count, std::uint64_t at_once, Work const& work) {
    std::atomic<std::uint64_t> next{0};
    std::atomic<bool> stop{false};
    auto const take = [&](unsigned core) {
        while (!stop) {
            auto const begin = next.fetch_add(at_once);
            if (begin >= count) return;
            for (auto item = begin; item < std::min(begin + at_once, count) && !stop; ++item)
                if (!work(item, core)) stop = true;
        }
    };
    std::vector<std::thread> others;
    for (unsigned core = 1; core < cores(); ++core) others.emplace_back(take, core);
    take(0);
    for (auto& one : others) one.join();
}

}  // namespace muster::simulation
