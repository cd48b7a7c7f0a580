// The page of memory in which a rank counts how long it waits for other ranks, and for data; the process that watches it on its node reads it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster {

/// Names the page's file for a rank: "/proc/4711/fd/9".
inline constexpr std::string_view wait_page_variable = "MUSTER_WAIT_PAGE";

/// All numbers only grow; they are relaxed: a reader may find one of them newer than another. Of a rank's process and of its threads.
struct wait_page {
    static constexpr std::size_t bytes = 4096;
    static constexpr std::uint64_t known_layout = 0x6d757374'77616974;  // "mustwait"; another layout gets another number

    struct other_rank {
        std::atomic<std::uint64_t> waited_ns;  ///< this rank waited, and that one came last
        std::atomic<std::uint64_t> times;
    };

    std::uint64_t layout;                    ///< set before the rank starts
    std::atomic<std::uint64_t> collectives;  ///< for which it waited
    std::atomic<std::uint64_t> waited_ns;    ///< for all of them
    std::atomic<std::uint64_t> users;        ///< communicators and exchanges that count here, or have
    std::atomic<std::uint64_t> batches;      ///< that data loaders have delivered
    std::atomic<std::uint64_t> data_ns;      ///< waited for them
    std::array<std::uint64_t, 2> unused;
    std::array<other_rank, 252> by_rank;  ///< of the first ranks of the world; those that came last, where the backend can tell
};
static_assert(sizeof(wait_page) == wait_page::bytes);

}  // namespace muster
