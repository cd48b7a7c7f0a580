// Process sets that their members make and that end again, messages between two ranks, and types that are only moved.
// ranks: 1 2 4
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "comm/backend/comm_error.hpp"
#include "comm/exchange/exchange.hpp"
#include "mpi_test.hpp"
#include "quick_exchange.hpp"

namespace muster::test {

namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

struct exchange_sets : testing::Test {
    exchange all{ranks().who(), quick()};
    int const rank = all.rank(), size = all.size();

    /// This rank and its neighbour: 0 with 1, 2 with 3, …
    std::vector<int> pair() const {
        int const first = rank - rank % 2;
        return first + 1 < size ? std::vector{first, first + 1} : std::vector{first};
    }
    float sum_in(int set) {
        std::vector<float> one(3, static_cast<float>(rank + 1));
        all.allreduce("x", view_of(std::span(one)), view_of(std::span(one)), reduction::sum, {.set = set}).wait();
        EXPECT_THAT(one, Each(one[0]));
        return one[0];
    }
    float sum_of(std::vector<int> const& ranks_of) const {
        return static_cast<float>(std::accumulate(ranks_of.begin(), ranks_of.end(), static_cast<int>(ranks_of.size())));
    }
};
using exchange_messages = exchange_sets;
using exchange_moved_types = exchange_sets;

comm_error error_of(std::function<void()> const& body) {
    try {
        body();
    } catch (comm_error const& problem) {
        return problem;
    }
    ADD_FAILURE() << "nothing was thrown";
    return {errc::internal, "nothing"};
}

TEST_F(exchange_sets, made_by_their_members_alone_several_at_once_under_one_name) {
    int const set = all.make_process_set(pair(), "pair");
    EXPECT_EQ(all.size_of_set(set), static_cast<int>(pair().size()));
    EXPECT_EQ(all.rank_in(set), rank % 2);
    EXPECT_EQ(sum_in(set), sum_of(pair()));
    if (rank == 0) {  // the others know nothing of this one
        int const mine[]{0};
        int const own = all.make_process_set(mine, "pair");
        EXPECT_NE(own, set);
        EXPECT_EQ(sum_in(own), 1.0f);
        all.remove_process_set(own);
    }
    EXPECT_EQ(sum_in(0), static_cast<float>(size * (size + 1) / 2));
}

TEST_F(exchange_sets, by_two_threads_in_opposite_orders) {
    std::vector<int> everybody(static_cast<std::size_t>(size));
    std::iota(everybody.begin(), everybody.end(), 0);
    int a = 0, b = 0;
    std::thread other([&] { (rank % 2 == 0 ? a : b) = all.make_process_set(everybody, rank % 2 == 0 ? "a" : "b"); });
    (rank % 2 == 0 ? b : a) = all.make_process_set(everybody, rank % 2 == 0 ? "b" : "a");
    other.join();
    std::vector<std::int32_t> both{a, b}, of_rank_0 = both;
    all.broadcast("numbers", view_of(std::span(of_rank_0)), view_of(std::span(of_rank_0)), 0).wait();
    EXPECT_EQ(both, of_rank_0);
    EXPECT_NE(a, b);
}

TEST_F(exchange_sets, wrong_lists_are_told) {
    int const none[]{size};
    EXPECT_EQ(error_of([&] { all.make_process_set(none, "s"); }).code(), errc::usage);
    if (size == 1) return;
    int const without[]{(rank + 1) % size};
    EXPECT_THAT(error_of([&] { all.make_process_set(without, "s"); }).what(), HasSubstr("not among its ranks"));
    if (size > 2 && rank < 3) {
        std::vector<int> const list = rank == 0 ? std::vector{0, 1, 2} : std::vector{0, 2, 1};
        auto const problem = error_of([&] { all.make_process_set(list, "differs"); });
        EXPECT_EQ(problem.code(), errc::peer_failed);
        EXPECT_THAT(problem.what(), HasSubstr("make process set \"differs\" whose first rank is 0: ranks [0, 1, 2] on rank 0 ("));
        EXPECT_THAT(problem.what(), HasSubstr("but ranks [0, 2, 1] on rank 1 ("));
        EXPECT_THAT(problem.culprits(), ElementsAre(1, 2));
    }
    all.barrier().wait();
}

TEST_F(exchange_sets, removed_ones_are_not_used_again_and_others_go_on) {
    std::vector<int> everybody(static_cast<std::size_t>(size));
    std::iota(everybody.begin(), everybody.end(), 0);
    int const kept = all.add_process_set(everybody);
    int const gone = all.add_process_set(std::vector{0});
    EXPECT_EQ(error_of([&] { all.remove_process_set(0); }).code(), errc::usage);
    EXPECT_THAT(error_of([&] { all.remove_process_set(99); }).what(), HasSubstr("there is no process set 99"));
    if (rank == 0) sum_in(gone);
    all.remove_process_set(gone);
    EXPECT_THAT(error_of([&] { all.remove_process_set(gone); }).what(), HasSubstr("has been removed"));
    EXPECT_EQ(error_of([&] { all.barrier(gone); }).code(), errc::usage);
    EXPECT_EQ(error_of([&] { all.size_of_set(gone); }).code(), errc::usage);
    EXPECT_EQ(sum_in(kept), sum_of(everybody));
    EXPECT_GT(all.add_process_set(everybody), gone);
}

TEST_F(exchange_sets, one_with_requests_in_flight_is_not_removed) {
    if (size == 1) GTEST_SKIP() << "nothing stays in flight alone";
    int const set = all.add_process_set(std::vector{0, 1});
    if (rank == 0) {
        std::vector<float> one(1, 1.0f);
        auto const handle = all.allreduce("late", view_of(std::span(one)), view_of(std::span(one)), reduction::sum, {.set = set});
        auto const problem = error_of([&] { all.remove_process_set(set); });
        EXPECT_EQ(problem.code(), errc::usage);
        EXPECT_THAT(problem.what(), HasSubstr("requests in flight (allreduce of \"late\")"));
        all.barrier().wait();
        handle.wait();
        EXPECT_EQ(one[0], 2.0f);
    } else {
        all.barrier().wait();
        std::vector<float> one(1, 1.0f);
        if (rank == 1)
            all.allreduce("late", view_of(std::span(one)), view_of(std::span(one)), reduction::sum, {.set = set}).wait();
    }
    all.remove_process_set(set);
}

/// As where a rank is lost while the others make it.
TEST(exchange_broken_set, that_cannot_be_made_fails_for_whoever_waits_for_it) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "UBSan looks at objects through a pipe, for which no descriptor is left here";
#endif
    if (ranks().backend() != "shm" || ranks().size() < 2) GTEST_SKIP() << "a set needs no new file here";
    exchange all{ranks().who(), quick()};
    std::vector<int> everybody(static_cast<std::size_t>(all.size()));
    std::iota(everybody.begin(), everybody.end(), 0);
    rlimit files{}, few{3, 0};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
    few.rlim_max = files.rlim_max;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    EXPECT_THROW(all.add_process_set(everybody), comm_error);
    ::setrlimit(RLIMIT_NOFILE, &files);
}

TEST_F(exchange_sets, made_and_removed_many_times) {
    for (int i = 0; i < 20; ++i) {
        int const set = all.make_process_set(pair(), "again");
        EXPECT_EQ(sum_in(set), sum_of(pair()));
        all.remove_process_set(set);
    }
    all.barrier().wait();
}

TEST_F(exchange_messages, go_round_in_order_whatever_their_size) {
    if (size == 1) GTEST_SKIP() << "nobody to write to";
    int const next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (std::size_t const count : {std::size_t{1}, std::size_t{0}, std::size_t{300'000}}) {
        std::vector<std::vector<std::int32_t>> sent, received;
        std::vector<exchange_handle> handles;
        for (int i = 0; i < 3; ++i) {
            sent.emplace_back(count, 100 * rank + i);
            received.emplace_back(count, -1);
        }
        for (std::size_t i = 0; i < 3; ++i) handles.push_back(all.receive(view_of(std::span(received[i])), before, 5));
        for (std::size_t i = 0; i < 3; ++i) handles.push_back(all.send(view_of(std::span(sent[i])), next, 5));
        for (auto const& each : handles) each.wait();
        for (int i = 0; i < 3; ++i) EXPECT_THAT(received[static_cast<std::size_t>(i)], Each(100 * before + i));
    }
}

TEST_F(exchange_messages, are_matched_by_tag_and_pass_other_collectives) {
    if (size == 1) GTEST_SKIP() << "nobody to write to";
    std::vector<double> a(1000, 1.0 + rank), b(2, 2.0);
    std::vector<float> sum(200'000, 1.0f);
    exchange_handle first, second;
    if (rank == 0) {
        first = all.send(view_of(std::span(a)), 1, 1);
        second = all.send(view_of(std::span(b)), 1, 2);
    } else if (rank == 1) {
        second = all.receive(view_of(std::span(b)), 0, 2);
        first = all.receive(view_of(std::span(a)), 0, 1);
    }
    all.allreduce("beside", view_of(std::span(sum)), view_of(std::span(sum)), reduction::sum).wait();
    first.wait();
    second.wait();
    EXPECT_THAT(sum, Each(static_cast<float>(size)));
    if (rank == 1) {
        EXPECT_THAT(a, Each(1.0));
        EXPECT_EQ(first.result().data, a.data());
    }
}

TEST_F(exchange_messages, in_a_set_and_while_others_have_joined) {
    if (size == 1) GTEST_SKIP() << "nobody to write to";
    int const set = all.make_process_set(pair(), "pair");
    std::vector<std::int64_t> value(1, rank);
    if (rank % 2 == 0)
        all.send(view_of(std::span(value)), 1, 0, {.set = set}).wait();
    else
        all.receive(view_of(std::span(value)), 0, 0, {.set = set}).wait();
    EXPECT_EQ(value[0], rank - rank % 2);
    value[0] = rank;
    exchange_handle joined;
    if (rank >= 2) joined = all.join();
    if (rank == 0) all.send(view_of(std::span(value)), 1).wait();
    if (rank == 1) all.receive(view_of(std::span(value)), 0).wait();
    if (rank == 1) {
        EXPECT_EQ(value[0], 0);
    }
    (rank >= 2 ? joined : all.join()).wait();
}

TEST_F(exchange_messages, that_differ_are_told_to_both_and_wrong_ones_to_who_gives_them) {
    std::vector<float> four(4), five(5);
    EXPECT_THAT(error_of([&] { all.send(view_of(std::span(four)), rank); }).what(), HasSubstr("no messages for itself"));
    EXPECT_THAT(error_of([&] { all.send(view_of(std::span(four)), size); }).what(), HasSubstr("does not lie in a set of"));
    tensor_view on_device = view_of(std::span(four));
    on_device.where = memory_kind::device;
    EXPECT_THAT(error_of([&] { all.send(on_device, (rank + 1) % size); }).what(),
                HasSubstr(size == 1 ? "no messages for itself" : "host memory"));
    if (size > 1 && rank < 2) {
        auto const handle = rank == 0 ? all.send(view_of(std::span(four)), 1, 3) : all.receive(view_of(std::span(five)), 0, 3);
        auto const problem = error_of([&] { handle.wait(); });
        EXPECT_EQ(problem.code(), errc::peer_failed);
        EXPECT_THAT(problem.what(), HasSubstr("message from rank 0 to rank 1 with tag 3 (number 0): shape [4] on rank 0 ("));
        EXPECT_THAT(problem.what(), HasSubstr("but shape [5] on rank 1 ("));
    }
    EXPECT_EQ(sum_in(0), static_cast<float>(size * (size + 1) / 2));
}

TEST(exchange_lonely_message, names_the_rank_that_does_not_send) {
    if (ranks().size() == 1) GTEST_SKIP() << "nobody to wait for";
    if (ranks().backend() == "mpi") GTEST_SKIP() << "MPI is left unfinalised then, which the launcher takes for a failure";
    exchange all(ranks().who(), quick());
    std::vector<float> one(1);
    auto const problem = error_of([&] {
        if (all.rank() == 0)
            all.receive(view_of(std::span(one)), 1, 9).wait(duration{0.3});
        else
            all.allreduce("never", view_of(std::span(one)), view_of(std::span(one)), reduction::sum).wait();
    });
    EXPECT_EQ(problem.code(), errc::timeout);
    EXPECT_THAT(problem.what(), HasSubstr("message from rank 1 to rank 0 with tag 9"));
    EXPECT_THAT(problem.what(), HasSubstr("rank 1 ("));
    EXPECT_THAT(problem.culprits(), ElementsAre(1));
}

TEST_F(exchange_messages, and_sets_of_some_go_on_while_the_others_end_theirs) {
    if (size == 1 || rank >= 2) return;
    for (int i = 0; i < 20; ++i) {
        std::vector<std::int32_t> value(3, rank);
        int const set = all.make_process_set(pair(), "pair");
        (rank == 0 ? all.send(view_of(std::span(value)), 1) : all.receive(view_of(std::span(value)), 0)).wait();
        EXPECT_THAT(value, Each(0));
        EXPECT_EQ(sum_in(set), 3.0f);
        all.remove_process_set(set);
    }
}

TEST_F(exchange_moved_types, are_gathered_broadcast_exchanged_and_not_reduced) {
    std::vector<std::uint16_t> values(static_cast<std::size_t>(2 * (rank + 1)), static_cast<std::uint16_t>(1000 + rank));
    tensor_view const mine{values.data(), values.size(), dtype::i16, memory_kind::host};
    std::int64_t const shape[]{rank + 1, 2};
    auto const gathered = all.allgather("g", mine, {}, {.shape = make_shape(shape)});
    gathered.wait();
    ASSERT_EQ(gathered.result().type, dtype::i16);
    ASSERT_EQ(gathered.result().count, static_cast<std::size_t>(size * (size + 1)));
    EXPECT_EQ(static_cast<std::uint16_t const*>(gathered.result().data)[gathered.result().count - 1], 1000 + size - 1);
    EXPECT_EQ(gathered.rows().back(), size);

    std::vector<std::uint8_t> flags(5, rank == 0 ? 1 : 0);
    tensor_view const of_root{flags.data(), flags.size(), dtype::boolean, memory_kind::host};
    all.broadcast("b", of_root, of_root, 0).wait();
    EXPECT_THAT(flags, Each(1));

    std::vector<std::uint16_t> out(static_cast<std::size_t>(size)), in(out.size(), static_cast<std::uint16_t>(rank));
    all.alltoall("a", {in.data(), in.size(), dtype::u16, memory_kind::host}, {},
                 {out.data(), out.size(), dtype::u16, memory_kind::host})
        .wait();
    for (int r = 0; r < size; ++r) EXPECT_EQ(out[static_cast<std::size_t>(r)], r);

    EXPECT_THAT(error_of([&] { all.allreduce("s", of_root, of_root, reduction::max); }).what(), HasSubstr("boolean is gathered"));
    EXPECT_EQ(error_of([&] { all.reducescatter("s", mine, {}, reduction::sum); }).code(), errc::usage);
    if (size == 1) return;
    tensor_view odd = of_root;
    if (rank == 1) odd.type = dtype::u8;
    EXPECT_THAT(error_of([&] { all.broadcast("t", odd, odd, 0).wait(); }).what(), HasSubstr("but type u8 on rank 1 ("));
}

}  // namespace

}  // namespace muster::test
