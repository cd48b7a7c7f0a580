// The nccl backend on a FAKE driver and a FAKE NCCL (tests/gpu/fake): which calls it makes and in which order, what it does when
// they hang, fail or are aborted. What the real libraries do is for nccl_test.cpp, where there is a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

#include "comm/backend/comm_error.hpp"
#include "comm/cuda/fusion_kernels.hpp"
#include "comm/nccl/library/nccl_library.hpp"
#include "fake_ranks.hpp"
#include "tests/thrown_message.hpp"

namespace muster {
namespace {

using namespace test;
using kind = collective::kind;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class nccl_fake : public testing::Test {
  protected:
    void SetUp() override { fake_reset(); }
    /// No call named a communicator that was gone, came while it was in progress, or destroyed what was in use.
    void TearDown() override {
        EXPECT_THAT(fake_log(), Not(HasSubstr("gone")));
        EXPECT_THAT(fake_log(), Not(HasSubstr("in progress")));
        EXPECT_THAT(fake_log(), Not(HasSubstr("has work")));
        EXPECT_THAT(fake_log(), Not(HasSubstr("not finalised")));
        EXPECT_THAT(fake_log(), Not(HasSubstr("another length")));
        fake_reset();
    }
};

int count_in_log(std::string const& line) {
    int count = 0;
    std::string const log = "\n" + fake_log();
    for (std::size_t at = 0; (at = log.find("\n" + line + "\n", at)) != std::string::npos; ++at) ++count;
    return count;
}

/// What every one of `size` ranks throws, each on its thread.
std::vector<std::string> messages_of_ranks(int size, errc code, std::function<void(int rank)> const& body) {
    std::vector<std::string> messages(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank)
        threads.emplace_back([&, rank] { messages[static_cast<std::size_t>(rank)] = message_of(code, [&] { body(rank); }); });
    for (auto& thread : threads) thread.join();
    return messages;
}

TEST_F(nccl_fake, one_rank_alone) {
    on_ranks(1, [](collective_backend& on, int) {
        std::vector<float> in{1, 2, 3}, out(3);
        run(on, {kind::allreduce, on_device(in), on_device(out)});
        EXPECT_EQ(out, in);
        run(on, {});
        EXPECT_THAT(on.hosts(), ElementsAre("n1"));
        EXPECT_TRUE(on.reaches(memory_kind::device));
        EXPECT_FALSE(on.reaches(memory_kind::host));
    });
    EXPECT_EQ(count_in_log("ncclCommDestroy"), 1);
    EXPECT_EQ(count_in_log("ncclCommAbort"), 0);
}

TEST_F(nccl_fake, allreduce_of_every_kind_and_type) {
    on_ranks(3, [](collective_backend& on, int rank) {
        std::vector<float> values{static_cast<float>(rank + 1), -2.0f * static_cast<float>(rank), 4};
        auto const reduced = [&](reduction how, scaling scale = {}) {
            std::vector<float> out(values.size());
            run(on, {kind::allreduce, on_device(values), on_device(out), how, 0, scale});
            return out;
        };
        EXPECT_THAT(reduced(reduction::sum), ElementsAre(6, -6, 12));
        EXPECT_THAT(reduced(reduction::average), ElementsAre(2, -2, 4));
        EXPECT_THAT(reduced(reduction::min), ElementsAre(1, -4, 4));
        EXPECT_THAT(reduced(reduction::max), ElementsAre(3, 0, 4));
        EXPECT_THAT(reduced(reduction::product), ElementsAre(6, 0, 64));
        EXPECT_THAT(reduced(reduction::sum, {0.5, 4}), ElementsAre(12, -12, 24));
        EXPECT_THAT(reduced(reduction::average, {2, 2}), ElementsAre(8, -8, 16));
        for (int step = 0; step < 100; ++step)  // more factors than operations of NCCL's are kept
            EXPECT_THAT(reduced(reduction::sum, {1, static_cast<double>(step)}), ElementsAre(6 * step, -6 * step, 12 * step));
        std::vector<std::int64_t> whole{rank, 1};
        run(on, {kind::allreduce, on_device(whole), on_device(whole), reduction::sum});
        EXPECT_THAT(whole, ElementsAre(3, 3));
        std::vector<double> doubles{0.25 * rank};
        run(on, {kind::allreduce, on_device(doubles), on_device(doubles), reduction::max});
        EXPECT_THAT(doubles, ElementsAre(0.5));
    });
}

TEST_F(nccl_fake, shares_counts_and_messages) {
    on_ranks(3, [](collective_backend& on, int rank) {
        auto const own = static_cast<std::size_t>(rank);
        for (std::size_t const count : {6u, 7u, 2u}) {  // even shares, uneven ones, an empty one
            std::vector<std::int32_t> in(count);
            std::iota(in.begin(), in.end(), 10 * rank);
            auto const share = share_of(count, 3, rank);
            std::vector<std::int32_t> out(share.count);
            run(on, {kind::reducescatter, on_device(in), on_device(out)});
            for (std::size_t i = 0; i < share.count; ++i) EXPECT_EQ(out[i], 30 + 3 * static_cast<int>(share.first + i));
        }
        std::vector<std::int32_t> mine{rank, rank}, all(6);
        run(on, {kind::allgather, on_device(mine), on_device(all)});
        EXPECT_THAT(all, ElementsAre(0, 0, 1, 1, 2, 2));
        std::vector<std::int32_t> some(own, rank), uneven(3);  // nothing from rank 0, one of rank 1, two of rank 2
        collective gather{kind::allgather, on_device(some), on_device(uneven)};
        gather.receive_counts = {0, 1, 2};
        run(on, gather);
        EXPECT_THAT(uneven, ElementsAre(1, 2, 2));
        std::vector<std::int32_t> everyone(4, rank == 1 ? 7 : 0);
        run(on, {kind::broadcast, on_device(everyone), on_device(everyone), reduction::sum, 1});
        EXPECT_THAT(everyone, Each(7));
        // Rank r sends s elements 10 r + s to rank s.
        collective swap{kind::alltoall};
        std::vector<std::int32_t> sent, got(3 * own);
        for (int to = 0; to < 3; ++to) sent.insert(sent.end(), static_cast<std::size_t>(to), 10 * rank + to);
        swap.in = on_device(sent);
        swap.out = on_device(got);
        swap.send_counts = {0, 1, 2};
        swap.receive_counts = {own, own, own};
        run(on, swap);
        for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], 10 * static_cast<int>(i / own) + rank);
        if (rank != 1) {
            std::vector<std::int32_t> out(rank == 0 ? 2 : 1), message(rank == 0 ? 1 : 2, rank);
            run(on, {kind::sendrecv, on_device(message), on_device(out), reduction::sum, 2 - rank});
            EXPECT_THAT(out, Each(2 - rank));
        }
        run(on, {});
    });
}

TEST_F(nccl_fake, factors_that_a_narrow_type_cannot_hold_go_through_our_kernels) {
    if (cuda::kernels_missing()) GTEST_SKIP() << *cuda::kernels_missing();
    on_ranks(3, [](collective_backend& on, int rank) {
        std::vector<bfloat16> in{bfloat16(3.0f * static_cast<float>(rank + 1)), bfloat16(300)}, out(2);
        run(on, {kind::allreduce, on_device(in), on_device(out), reduction::average});
        EXPECT_EQ(static_cast<float>(out[0]), 6.0f);
        EXPECT_EQ(static_cast<float>(out[1]), 300.0f);  // a third in bf16 would make it 300.6, so 302 or 300 by luck
        EXPECT_EQ(static_cast<float>(in[1]), 300.0f);
        std::vector<half> big{half(60000)};
        run(on, {kind::allreduce, on_device(big), on_device(big), reduction::average});  // the sum alone would overflow
        EXPECT_NEAR(static_cast<float>(big[0]), 60000, 64);
        std::vector<half> shares(7, half(static_cast<float>(rank))), share(share_of(7, 3, rank).count);
        run(on, {kind::reducescatter, on_device(shares), on_device(share), reduction::max, 0, {3, 5}});
        for (half const each : share) EXPECT_EQ(static_cast<float>(each), 30.0f);
        EXPECT_THAT(shares, Each(half(static_cast<float>(rank))));  // only read
    });
}

TEST_F(nccl_fake, many_under_way_waited_for_in_any_order) {
    fake_set("start_polls", 3);
    on_ranks(4, [](collective_backend& on, int rank) {
        for (int round = 0; round < 20; ++round) {
            std::vector<std::vector<float>> tensors(20);
            std::vector<ticket> under_way;
            for (std::size_t i = 0; i < tensors.size(); ++i) {
                tensors[i].assign(i + 1, static_cast<float>(rank + round));
                under_way.push_back(on.start({kind::allreduce, on_device(tensors[i]), on_device(tensors[i])}));
            }
            for (std::size_t k = 0; k < tensors.size(); ++k) {
                std::size_t const i = (k * 7 + static_cast<std::size_t>(rank)) % tensors.size();
                wait(on, under_way[i]);
                EXPECT_THAT(tensors[i], Each(static_cast<float>(6 + 4 * round)));
            }
        }
    });
}

TEST_F(nccl_fake, waits_on_the_device_for_the_programs_stream_and_is_waited_for) {
    fake_set("freeze_default", 1);
    std::atomic<int> started{0};
    on_ranks(2, [&](collective_backend& on, int rank) {
        cuda::driver const& with = *fake_driver().use;
        cuda::stream_handle stream = nullptr;
        ASSERT_EQ(with.stream_create(&stream, 0, 0), 0);
        cuda::event_handle ready = nullptr;
        ASSERT_EQ(with.event_create(&ready, 0), 0);
        std::vector<float> source(4, static_cast<float>(rank + 1)), tensor(4, 0.0f), result(4, 0.0f);
        std::size_t const bytes = 4 * sizeof(float);
        auto const address = [](auto& of) { return std::bit_cast<cuda::device_address>(of.data()); };
        // What the program's stream waits for: the default stream, which stands still for now.
        ASSERT_EQ(with.event_record(ready, nullptr), 0);
        ASSERT_EQ(with.stream_wait_event(stream, ready, 0), 0);
        // The program's own copies, before and behind: nothing waits for the host in between.
        ASSERT_EQ(with.copy_device_to_device(address(tensor), address(source), bytes, stream), 0);
        collective sum{kind::allreduce, on_device(tensor), on_device(tensor)};
        sum.stream = stream;
        ticket const which = on.start(sum);
        while (!on.order(which, stream)) std::this_thread::yield();
        EXPECT_FALSE(on.done(which));
        ++started;
        while (started < 2) std::this_thread::yield();
        fake_set("freeze_default", 0);
        ASSERT_EQ(with.copy_device_to_device(address(result), address(tensor), bytes, stream), 0);
        ASSERT_EQ(with.event_record(ready, stream), 0);
        while (with.event_query(ready) != 0) std::this_thread::yield();
        EXPECT_THAT(result, Each(3.0f));
        wait(on, which);
        with.event_destroy(ready);
        with.stream_destroy(stream);
    });
}

TEST_F(nccl_fake, process_sets_are_split_off) {
    on_ranks(4, [](collective_backend& on, int rank) {
        std::vector<float> before(8, 1.0f);
        ticket const under_way = on.start({kind::allreduce, on_device(before), on_device(before)});
        auto const part = on.subset(std::array{3, 1});
        EXPECT_THAT(before, Each(4.0f));  // NCCL wants nothing under way when it splits
        wait(on, under_way);
        ASSERT_EQ(part != nullptr, rank % 2 == 1);
        std::vector<std::int32_t> all(4, rank);
        run(on, {kind::allreduce, on_device(all), on_device(all)});
        EXPECT_THAT(all, Each(6));
        if (!part) return;
        std::vector<std::int32_t> mine{rank}, both(2);
        run(*part, {kind::allgather, on_device(mine), on_device(both)});
        EXPECT_THAT(both, ElementsAre(3, 1));
        EXPECT_EQ(part->hosts().size(), 2u);
    });
    EXPECT_EQ(count_in_log("ncclCommDestroy"), 6);
}

TEST_F(nccl_fake, a_communicator_that_does_not_come_up_is_aborted_after_the_deadline) {
    fake_set("init_hangs", 1);
    rendezvous at(1);
    auto const message = message_of(errc::timeout, [&] { make_rank(0, 1, at, fake_options(0, 0.05)); });
    EXPECT_THAT(message, HasSubstr("rank 0 of 1 on n1: the communicator did not come up within"));
    EXPECT_EQ(count_in_log("ncclCommAbort"), 1);
    EXPECT_EQ(count_in_log("ncclCommDestroy"), 0);
}

TEST_F(nccl_fake, a_failed_start_tells_the_words_of_nccl) {
    fake_set("init_fails", 2);
    rendezvous at(1);
    auto const message = message_of(errc::library, [&] { make_rank(0, 1, at, fake_options(0)); });
    EXPECT_THAT(message, HasSubstr("unhandled system error"));
    EXPECT_THAT(message, HasSubstr("told by the fake NCCL"));
    EXPECT_EQ(count_in_log("ncclCommAbort"), 1);
}

TEST_F(nccl_fake, ranks_that_share_a_gpu_are_told_what_to_do) {
    fake_set("init_fails", 5);
    rendezvous at(2);
    for (auto const& message :
         messages_of_ranks(2, errc::placement, [&](int rank) { make_rank(rank, 2, at, fake_options(0)); })) {
        EXPECT_THAT(message, HasSubstr("ranks 0 and 1 on n1 share GPU-00000000-0000-0000-0000-000000000000"));
        EXPECT_THAT(message, HasSubstr("NCCL_HOSTID"));
    }
}

TEST_F(nccl_fake, a_rank_without_its_gpu_is_told_by_all) {
    rendezvous at(2);
    auto const messages =
        messages_of_ranks(2, errc::placement, [&](int rank) { make_rank(rank, 2, at, fake_options(rank == 0 ? 0 : 9)); });
    for (auto const& message : messages) EXPECT_THAT(message, HasSubstr("rank 1 on n1: GPU 9 was asked for"));
    EXPECT_EQ(count_in_log("ncclCommInitRankConfig"), 0);
}

TEST_F(nccl_fake, ranks_without_nccl_or_driver_are_told_by_all_before_anything_is_made) {
    nccl::found_library const no_nccl{nullptr, 0, "no NCCL: libnccl.so.2 is not there"};
    cuda::found_driver const no_driver{nullptr, 0, "no CUDA driver"};
    rendezvous at(4);
    auto const messages = messages_of_ranks(4, errc::unavailable, [&](int rank) {
        nccl::parts const from{
            rank == 0 || rank == 2 ? &no_nccl : &fake_nccl(), rank == 3 ? &no_driver : &fake_driver(),
            [&](identity const& who, std::span<std::byte const> mine, duration) { return at.gather(who.rank, mine); }};
        nccl::make_backend(fake_rank(rank, 4), fake_options(rank), from);
    });
    for (auto const& message : messages)
        EXPECT_THAT(message, HasSubstr("a communicator on NCCL cannot be made: rank 0 on n1, rank 2 on n1: no NCCL: libnccl.so.2 "
                                       "is not there; rank 3 on n1: no CUDA driver"));
    EXPECT_EQ(count_in_log("ncclCommInitRankConfig"), 0);
}

TEST_F(nccl_fake, what_a_rank_lacks_is_said_although_nobody_hears_it) {
    nccl::found_library const no_nccl{nullptr, 0, "no NCCL: libnccl.so.2 is not there"};
    nccl::parts const from{&no_nccl, &fake_driver(),
                           [](identity const&, std::span<std::byte const>, duration) -> std::vector<std::vector<std::byte>> {
                               throw comm_error(errc::timeout, "the ranks did not meet");
                           }};
    auto const message = message_of(errc::unavailable, [&] { nccl::make_backend(fake_rank(0, 2), fake_options(0), from); });
    EXPECT_THAT(message, HasSubstr("libnccl.so.2 is not there (and the other ranks did not hear of it: the ranks did not meet)"));
}

TEST_F(nccl_fake, a_collective_that_hangs_is_aborted_and_has_no_result) {
    std::atomic<int> here{0}, through{0};
    on_ranks(2, [&](collective_backend& on, int rank) {
        std::vector<float> tensor(8, 1.0f);
        run(on, {});
        ++here;
        while (here < 2) std::this_thread::yield();
        if (rank == 1) {  // never comes: waits until the other has given up
            while (through == 0) std::this_thread::yield();
            return;
        }
        ticket const first = on.start({kind::allreduce, on_device(tensor), on_device(tensor)});
        ticket const second = on.start({});
        EXPECT_FALSE(on.done(first));
        on.abandon(first);
        // The device says now that the second one is through; it is not believed.
        auto const message = message_of(errc::peer_failed, [&] { wait(on, second); });
        EXPECT_THAT(message, HasSubstr("the communicator was aborted, and what it was doing has no result"));
        EXPECT_THAT(message, HasSubstr("a allreduce was given up"));
        EXPECT_THROW(on.start({}), comm_error);
        through = 1;
    });
    EXPECT_EQ(count_in_log("ncclCommAbort"), 2) << "the other rank's communicator is of this process too";
}

TEST_F(nccl_fake, all_communicators_are_marked_before_the_first_is_aborted) {
    rendezvous at(1), at_other(1);
    auto const one = make_rank(0, 1, at, fake_options(0, 0.1));
    auto const other = make_rank(0, 1, at_other, fake_options(1, 0.1));
    fake_set("freeze", 1);
    std::vector<float> a(1), b(1);
    ticket const first = one->start({kind::allreduce, on_device(a), on_device(a)});
    ticket const second = other->start({kind::allreduce, on_device(b), on_device(b)});
    fake_set("abort_hangs", 1);
    one->abandon(first);
    // The first abort hangs, and the other communicator is known to have failed all the same, although its device goes on.
    EXPECT_EQ(count_in_log("ncclCommAbort"), 0);
    fake_set("freeze", 0);
    EXPECT_THAT(message_of(errc::peer_failed, [&] { wait(*other, second); }), HasSubstr("has no result"));
    EXPECT_EQ(count_in_log("ncclCommAbort"), 0);
    fake_set("abort_hangs", 0);
    for (int i = 0; i < 10000 && count_in_log("ncclCommAbort") < 2; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(count_in_log("ncclCommAbort"), 2);
}

/// A communicator that is made after a failure is not drawn into it by what is left of those before.
TEST_F(nccl_fake, what_is_made_after_a_failure_is_not_part_of_it) {
    rendezvous at(1), at_next(1);
    auto failed = make_rank(0, 1, at, fake_options(0));
    fake_set("freeze", 1);
    std::vector<float> a(1);
    ticket const first = failed->start({kind::allreduce, on_device(a), on_device(a)});
    ticket const second = failed->start({kind::allreduce, on_device(a), on_device(a)});
    failed->abandon(first);
    fake_set("freeze", 0);
    auto const next = make_rank(0, 1, at_next, fake_options(0));
    failed->abandon(second);
    failed.reset();
    run(*next, {});
    EXPECT_EQ(count_in_log("ncclCommAbort"), 1);
}

TEST_F(nccl_fake, an_error_of_the_network_fails_everything_under_way) {
    rendezvous at(1);
    auto const on = make_rank(0, 1, at, fake_options(0));
    fake_set("freeze", 1);
    std::vector<float> a(1), b(1);
    ticket const first = on->start({kind::allreduce, on_device(a), on_device(a)});
    ticket const second = on->start({kind::allreduce, on_device(b), on_device(b)});
    EXPECT_FALSE(on->done(first));
    fake_set("async_error", 6);
    for (ticket const each : {second, first})
        EXPECT_THAT(message_of(errc::peer_failed, [&] { on->done(each); }),
                    AllOf(HasSubstr("NCCL lost a rank"), HasSubstr("there was a network error")));
    EXPECT_EQ(count_in_log("ncclCommAbort"), 1);
    fake_set("freeze", 0);
}

TEST_F(nccl_fake, a_call_that_fails_is_told_at_once) {
    rendezvous at(1);
    auto const on = make_rank(0, 1, at, fake_options(0));
    fake_set("call_fails", 3);
    std::vector<float> a(1);
    auto const message = message_of(errc::library, [&] { on->start({kind::allreduce, on_device(a), on_device(a)}); });
    EXPECT_THAT(message, HasSubstr("ncclAllReduce"));
}

TEST_F(nccl_fake, an_end_that_hangs_becomes_an_abort) {
    rendezvous at(1);
    auto on = make_rank(0, 1, at, fake_options(0, 0.05));
    fake_set("finalize_hangs", 1);
    on.reset();
    EXPECT_EQ(count_in_log("ncclCommAbort"), 1);
    EXPECT_EQ(count_in_log("ncclCommDestroy"), 0);
}

TEST_F(nccl_fake, a_process_set_that_does_not_come_up_fails_its_whole) {
    rendezvous at(1);
    auto const on = make_rank(0, 1, at, fake_options(0, 0.05));
    fake_set("split_hangs", 1);
    EXPECT_THAT(message_of(errc::timeout, [&] { on->subset(std::array{0}); }), HasSubstr("the process set did not come up"));
    EXPECT_THROW(on->start({}), comm_error);
}

TEST_F(nccl_fake, what_is_missing_is_said_in_words) {
    std::array<std::string, 1> const nowhere{"libnccl-that-is-nowhere.so.2"};
    auto const nccl = nccl::find_library(nowhere);
    EXPECT_EQ(nccl.use, nullptr);
    EXPECT_THAT(nccl.why_not, HasSubstr("no NCCL: libnccl-that-is-nowhere.so.2: cannot open shared object file"));
    std::array<std::string, 1> const other{MUSTER_FAKE_GPU};
    fake_set("nccl_version", 21400);
    EXPECT_THAT(nccl::find_library(other).why_not, HasSubstr("is NCCL 2.14.0, 2.18.0 or later is needed"));
    fake_set("init_code", 100);
    EXPECT_THAT(cuda::find_driver(other).why_not, HasSubstr("finds no GPU"));
    fake_set("init_code", 0);
    fake_set("devices", 0);
    EXPECT_THAT(cuda::find_driver(other).why_not, HasSubstr("shows this process no GPU"));
    std::array<std::string, 1> const unrelated{"libm.so.6"};
    EXPECT_THAT(cuda::find_driver(unrelated).why_not, HasSubstr("it lacks cuInit, cuDriverGetVersion"));
    EXPECT_THAT(nccl::find_library(unrelated).why_not, HasSubstr("it lacks ncclGetVersion"));
}

TEST_F(nccl_fake, which_gpu_is_whose) {
    EXPECT_EQ(cuda::choose_device(fake_driver(), 2, 0), 2);
    EXPECT_EQ(cuda::choose_device(fake_driver(), -1, 3), 3);
    EXPECT_THAT(message_of(errc::placement, [] { cuda::choose_device(fake_driver(), 4, 0); }), HasSubstr("GPU 4 was asked for"));
    EXPECT_THAT(message_of(errc::placement, [] { cuda::choose_device(fake_driver(), -1, 4); }),
                HasSubstr("local rank 4 finds 4"));
}

}  // namespace
}  // namespace muster
