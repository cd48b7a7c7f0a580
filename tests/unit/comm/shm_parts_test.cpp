// What the shared-memory backend is made of, without other processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <new>

#include "comm/backend/argument_checks.hpp"
#include "comm/backend/memory/process_token.hpp"
#include "comm/shm/memory/remote_memory.hpp"
#include "comm/shm/memory/segment.hpp"
#include "comm/shm/memory/shared_buffers.hpp"
#include "comm/shm/shm_backend.hpp"
#include "comm/shm/shm_world.hpp"

namespace muster::shm {
namespace {

using testing::HasSubstr;

buffers_owner myself() {
    struct stat about {};
    auto const file = make_memory_file(4096);
    EXPECT_EQ(::fstat(file.get(), &about), 0);
    return {::getpid(), own_token(), about.st_dev};
}

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
            add(&one.chunks(turn), sizeof(chunk_counters));
            add(one.payload(turn), std::max(sizes.payload_bytes, sizes.largest_in_a_crowd()));
            add(one.window(turn), std::max(sizes.largest_gathered(), ranks * sizes.share_bytes()));
            add(one.result(turn), std::max(sizes.share_bytes(), sizes.largest_gathered() / ranks + 64));
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

TEST(shm_shared_buffers, are_found_by_any_address_within) {
    comm_buffer one = allocate_shared(5000);
    std::byte* const data = one.data();
    EXPECT_EQ(one.bytes(), 5000u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 4096, 0u);
    auto const place = place_of(data + 10, 4990);
    EXPECT_NE(place.buffer, 0u);
    EXPECT_EQ(place.offset, 10u);
    EXPECT_EQ(place_of(data, 8192).buffer, place.buffer) << "whole pages";
    EXPECT_EQ(place_of(data, 8193), shared_place{});
    EXPECT_EQ(place_of(data - 1, 2), shared_place{});
    EXPECT_EQ(place_of(&place, 1), shared_place{});
    one = allocate_shared(1);
    EXPECT_EQ(place_of(data, 1).buffer == place.buffer, false);
}

TEST(shm_shared_buffers, stay_safe_to_write_to_when_their_owner_has_freed_them) {
    mapped_buffers theirs;
    int code = 0;
    auto one = allocate_shared(10000);
    auto const place = place_of(one.data(), 10000);
    std::byte* const seen = theirs.find(myself(), place, 10000, code);
    ASSERT_NE(seen, nullptr) << code;
    seen[9999] = std::byte{7};
    EXPECT_EQ(one.data()[9999], std::byte{7});
    EXPECT_EQ(theirs.find(myself(), place, 12289, code), nullptr) << "more than there is";
    EXPECT_EQ(code, EBADF);
    one = {};
    EXPECT_EQ(seen[9999], std::byte{0}) << "given back to the system";
    seen[9999] = std::byte{8};

    auto const next = allocate_shared(10000);
    EXPECT_EQ(next.data()[9999], std::byte{0});
    theirs.tidy();
    EXPECT_EQ(theirs.size(), 0u);
    ASSERT_NE(theirs.find(myself(), place_of(next.data(), 1), 1, code), nullptr);
    theirs.tidy();
    EXPECT_EQ(theirs.size(), 1u);
}

TEST(shm_shared_buffers, another_file_of_the_same_number_is_refused) {
    mapped_buffers theirs;
    int code = 0;
    auto const one = allocate_shared(10000);
    auto place = place_of(one.data(), 1);
    ++place.buffer;
    EXPECT_EQ(theirs.find(myself(), place, 1, code), nullptr);
    EXPECT_EQ(code, EBADF);
    auto const file = make_memory_file(8192);
    place.file = file.get();
    EXPECT_EQ(theirs.find(myself(), place, 1, code), nullptr);
    EXPECT_EQ(code, EBADF);
    place.file = 1 << 20;
    EXPECT_EQ(theirs.find(myself(), place, 1, code), nullptr);
    EXPECT_EQ(code, ESRCH);
    EXPECT_EQ(theirs.size(), 0u);
}

/// The number of the process and of the buffer are right, as they are in another PID namespace.
TEST(shm_shared_buffers, another_processs_file_is_refused) {
    mapped_buffers theirs;
    int code = 0;
    auto const one = allocate_shared(10000);
    auto const place = place_of(one.data(), 1);
    for (int wrong = 0; wrong < 4; ++wrong) {
        auto owner = myself();
        auto said = place;
        if (wrong == 0) owner.token.low ^= 1;
        if (wrong == 1) owner.token = {};
        if (wrong == 2) ++owner.device;
        if (wrong == 3) ++said.inode;
        EXPECT_EQ(theirs.find(owner, said, 1, code), nullptr) << wrong;
        EXPECT_EQ(code, EBADF);
    }
    EXPECT_NE(theirs.find(myself(), place, 1, code), nullptr);
}

/// A forked child announces its own, and its parent's buffers are none of its own.
TEST(shm_process_token, is_another_one_after_fork) {
    auto const mine = own_token();
    ASSERT_TRUE(mine);
    EXPECT_EQ(own_token(), mine);
    process_token held;
    std::memcpy(&held, reinterpret_cast<void const*>(own_token_address()), sizeof held);
    EXPECT_EQ(held, as_held(mine));
    EXPECT_FALSE(held == mine) << "an announcement is not what the memory holds";
    auto const one = allocate_shared(1);
    pid_t const child = ::fork();
    if (child == 0) {
        bool const other = own_token() && !(own_token() == mine);
        ::_exit(other && place_of(one.data(), 1) == shared_place{} ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST(shm_shared_buffers, absurd_sizes_are_refused) {
    for (std::size_t const bytes : {SIZE_MAX, SIZE_MAX - 4095, SIZE_MAX / 2, SIZE_MAX - 8192}) {
        EXPECT_THROW(allocate_shared(bytes), std::bad_alloc) << bytes;
        EXPECT_THROW(plain_buffer(bytes), std::bad_alloc) << bytes;
    }
}

TEST(shm_shared_buffers, a_forked_child_that_frees_them_leaves_its_parents_alone) {
    auto one = allocate_shared(10000);
    one.data()[0] = std::byte{5};
    pid_t const child = ::fork();
    if (child == 0) {
        one = {};
        ::_exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(one.data()[0], std::byte{5});
}

TEST(shm_store_choice, follows_the_faster_way_of_each_size_and_notices_when_that_changes) {
    store_choice choice;
    store_choice::choices chosen = store_choice::all_stream;
    std::array<unsigned, 2> streamed{};
    std::size_t const small = 8 << 10, large = 64 << 10;
    // A byte of the small ones takes three times as long; an interruption now and then.
    auto const run = [&](unsigned reductions, double cost_streamed, double cost_cached, double large_streamed,
                         double large_cached) {
        streamed = {};
        for (unsigned i = 0; i < reductions; ++i)
            for (std::size_t const bytes : {small, large}) {
                bool const is_large = bytes == large, streams = choice.next_streams(chosen, bytes);
                choice.count(bytes);
                streamed[is_large] += streams ? 1 : 0;
                double const cost =
                    is_large ? (streams ? large_streamed : large_cached) : 3 * (streams ? cost_streamed : cost_cached);
                chosen = choice.note(streams, bytes, (i % 7 == 3 ? 100.0 : cost) * static_cast<double>(bytes));
            }
    };
    run(200, 1.2, 1.0, 1.2, 1.0);
    EXPECT_FALSE(store_choice::streams(chosen, small));
    EXPECT_LT(streamed[0], 20u) << "processors near each other";
    EXPECT_LT(streamed[1], 20u);
    run(200, 1.2, 3.0, 1.2, 1.0);
    EXPECT_TRUE(store_choice::streams(chosen, small)) << "they have been moved apart";
    EXPECT_GT(streamed[0], 150u);
    EXPECT_LT(streamed[1], 20u) << "what lies in memory all the same";
    run(200, 1.2, 1.0, 1.2, 1.0);
    EXPECT_FALSE(store_choice::streams(chosen, small));
    run(200, 1.0, 1.2, 1.0, 1.2);
    EXPECT_FALSE(store_choice::streams(chosen, small)) << "within what moments differ by";
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
    EXPECT_THAT(shm_unavailable(who, {}, 0).value_or(""), HasSubstr("2 of 4 are on this one"));
    who.local_size = 4;
    EXPECT_EQ(shm_unavailable(who, {}, 0), std::nullopt);
}

}  // namespace
}  // namespace muster::shm
