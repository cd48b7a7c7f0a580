// An alltoall of every pattern of pairs: each exchanges something or nothing.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "comm/communicator.hpp"

namespace muster::test {

/// One bit for each pair, from * size + to. All patterns where they are few, else some drawn by chance, the same on each rank.
inline std::vector<std::uint32_t> patterns_of_pairs(int size) {
    auto const bits = static_cast<unsigned>(size * size);
    std::vector<std::uint32_t> patterns;
    if (bits <= 9) {
        for (std::uint32_t pattern = 0; pattern < 1u << bits; ++pattern) patterns.push_back(pattern);
        return patterns;
    }
    for (unsigned bit = 0; bit < bits && bit < 32; ++bit) patterns.push_back(1u << bit);
    std::mt19937 draw(bits);
    for (int i = 0; i < 200; ++i) patterns.push_back(static_cast<std::uint32_t>(draw() & draw()));
    return patterns;
}

/// Collective. At most 5 ranks: the patterns have 32 bits.
inline void expect_alltoall_of_every_pattern(communicator& all) {
    auto const own = all.rank();
    for (std::uint32_t const pattern : patterns_of_pairs(all.size())) {
        std::vector<std::size_t> send_counts, receive_counts;
        std::vector<std::int32_t> in, expected;
        auto const count = [&](int from, int to) { return std::size_t{pattern >> (from * all.size() + to) & 1u}; };
        for (int other = 0; other < all.size(); ++other) {
            send_counts.push_back(count(own, other));
            receive_counts.push_back(count(other, own));
            if (send_counts.back() != 0) in.push_back(own * 10 + other);
            if (receive_counts.back() != 0) expected.push_back(other * 10 + own);
        }
        std::vector<std::int32_t> out(expected.size());
        all.alltoall("x", view_of(std::span(in)), send_counts, view_of(std::span(out)), receive_counts).wait();
        ASSERT_EQ(out, expected) << "pattern " << pattern;
    }
    all.barrier().wait();
}

}  // namespace muster::test
