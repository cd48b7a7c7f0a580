// What the shared-memory backend is made of, without other processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>

#include "comm/shm/remote_memory.hpp"
#include "comm/shm/segment.hpp"
#include "comm/shm/shm_backend.hpp"
#include "comm/shm/signature.hpp"

namespace muster::shm {
namespace {

using testing::HasSubstr;

TEST(shm_remote_memory, tells_why_it_cannot) {
    std::array<int, 4> const from{1, 2, 3, 4};
    std::array<int, 4> to{};
    int const code = read_memory(::getpid(), to.data(), reinterpret_cast<std::uintptr_t>(from.data()), sizeof to);
    if (code == 0) {
        EXPECT_EQ(to, from);
        EXPECT_EQ(read_memory(::getpid(), to.data(), 64, sizeof to), EFAULT);
    }
    EXPECT_THAT(why_no_memory_access(EPERM), HasSubstr("process_vm_readv: Operation not permitted"));
    EXPECT_THAT(why_no_memory_access(ENOSYS), HasSubstr("this kernel has none"));
}

TEST(shm_segment, places_do_not_overlap) {
    for (std::size_t const ranks : {1u, 2u, 3u, 7u, 128u}) {
        geometry sizes;
        sizes.ranks = ranks;
        std::map<std::size_t, std::size_t> places;  // begin, bytes
        auto* const base = reinterpret_cast<std::byte*>(4096);
        region const one(base, sizes);
        auto const add = [&](void const* at, std::size_t bytes) {
            auto const begin = static_cast<std::size_t>(static_cast<std::byte const*>(at) - base);
            EXPECT_TRUE(places.emplace(begin, bytes).second);
            EXPECT_LE(begin + bytes, sizes.region_bytes());
        };
        for (std::uint64_t turn = 0; turn < 2; ++turn) {
            add(&one.announced(turn), sizeof(announcement));
            add(one.payload(turn), sizes.payload_bytes);
            add(one.window(turn), std::max(sizes.window_bytes, ranks * sizes.share_bytes()));
            add(one.result(turn), sizes.share_bytes());
            add(one.pair_buffer(turn), sizes.pair_bytes);
        }
        add(&one.here(), sizeof(station));
        add(&one.progress(), sizeof(counters));
        for (std::size_t i = 0; i < ranks; ++i) {
            add(&one.announced_to(i), sizeof(announcement));
            add(&one.progress_with(i), sizeof(counters));
        }
        std::size_t end = 0;
        for (auto const& [begin, bytes] : places) {
            EXPECT_GE(begin, end);
            end = begin + bytes;
        }
        EXPECT_EQ(sizes.region_bytes() % 4096, 0u);
    }
}

TEST(shm_signature, differs_in_all_that_must_be_equal) {
    std::array<float, 8> data{};
    collective const base{collective::kind::allreduce, view_of(std::span(data)), view_of(std::span(data)), reduction::sum};
    auto const first = signature_of(base);
    auto other = base;
    other.how = reduction::max;
    EXPECT_NE(signature_of(other), first);
    other = base;
    other.in.type = dtype::i32;
    EXPECT_NE(signature_of(other), first);
    other = base;
    other.scale.after = 0.5;
    EXPECT_NE(signature_of(other), first);
    other = base;
    other.what = collective::kind::broadcast;
    auto root = other;
    root.root = 1;
    EXPECT_NE(signature_of(other), first);
    EXPECT_NE(signature_of(other), signature_of(root));
    other.what = collective::kind::allgather;
    root = other;
    root.receive_counts = {1, 2};
    EXPECT_NE(signature_of(other), signature_of(root));
    EXPECT_TRUE(counts_are_equal(other));
    EXPECT_FALSE(counts_are_equal(root));
    EXPECT_EQ(describe_signature(first, 8), "allreduce (sum) of 8 elements of f32");
}

TEST(shm_backend, serves_the_ranks_of_one_node) {
    identity who;
    who.world_size = 4;
    who.local_size = 2;
    EXPECT_THAT(shm_unavailable(who, {}).value_or(""), HasSubstr("2 of 4 are on this one"));
    who.local_size = 4;
    EXPECT_EQ(shm_unavailable(who, {}), std::nullopt);
}

}  // namespace
}  // namespace muster::shm
