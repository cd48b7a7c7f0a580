// Many collectives under way at once, completed in different orders on different ranks, beside the program's own MPI traffic.
// ranks: 1 2 3 4
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#ifdef MUSTER_HAVE_MPI
#include <mpi.h>
#endif

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "comm/backend/comm_error.hpp"
#include "comm/communicator.hpp"
#include "mpi_test.hpp"

namespace muster::test {

namespace {

communicator by_mpis_algorithms() {
    comm_options options = ranks().options();
    options.backend = ranks().backend();
    options.direct_ranks = 0;
    return communicator::create(ranks().who(), options);
}

struct under_way {
    std::vector<float> values;
    operation handle;
};

/// Starts collectives of many sizes; what they must become is known from `i` and the number of ranks.
std::vector<under_way> start_many(communicator& all, std::size_t how_many) {
    std::vector<under_way> started(how_many);
    for (std::size_t i = 0; i < how_many; ++i) {
        auto& next = started[i];
        std::size_t const count = (i * 7919) % 60000 + (i % 5 == 0 ? 1200000u : 0u);
        next.values.assign(count, static_cast<float>(i + static_cast<std::size_t>(all.rank())));
        auto const view = view_of(std::span(next.values));
        if (i % 7 == 3)
            next.handle = all.broadcast("b" + std::to_string(i), view, static_cast<int>(i) % all.size());
        else
            next.handle = all.allreduce("r" + std::to_string(i), view, reduction::sum);
    }
    return started;
}

void expect_right(communicator& all, std::vector<under_way> const& started) {
    auto const size = static_cast<std::size_t>(all.size());
    for (std::size_t i = 0; i < started.size(); ++i) {
        auto const expected = static_cast<float>(i % 7 == 3 ? i + i % size : i * size + size * (size - 1) / 2);
        ASSERT_TRUE(std::all_of(started[i].values.begin(), started[i].values.end(), [&](float value) {
            return value == expected;
        })) << i;
    }
}

std::vector<std::size_t> shuffled(std::size_t count, int rank) {
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(rank)));
    return order;
}

void wait_in_different_orders(communicator& all) {
    auto started = start_many(all, 40);
    for (auto const i : shuffled(started.size(), all.rank())) started[i].handle.wait();
    expect_right(all, started);
}

TEST(async, each_rank_may_wait_in_its_own_order) {
    wait_in_different_orders(ranks());
}

TEST(async, each_rank_may_wait_in_its_own_order_with_mpis_algorithms) {
    auto all = by_mpis_algorithms();
    wait_in_different_orders(all);
}

TEST(async, polling_alone_completes) {
    auto started = start_many(ranks(), 20);
    std::size_t open = started.size();
    while (open != 0) {
        open = 0;
        for (auto& each : started) open += each.handle.done() ? 0u : 1u;
    }
    expect_right(ranks(), started);
}

TEST(async, one_rank_polls_one_waits_and_one_lets_the_destructor_wait) {
    auto started = start_many(ranks(), 20);
    switch (ranks().rank() % 3) {
        case 0:
            for (auto& each : started) each.handle.wait(duration{30.0});
            break;
        case 1:
            for (auto& each : started)
                while (!each.handle.done()) ranks().progress();
            break;
        default:
            for (auto& each : started) each.handle = {};  // assigning over it waits, as destroying does
    }
    expect_right(ranks(), started);
}

TEST(async, operations_move) {
    std::vector<float> values(1000, 1.0f);
    operation first = ranks().allreduce("moved", view_of(std::span(values)), reduction::sum);
    operation second = std::move(first);
    EXPECT_TRUE(first.done());  // NOLINT(bugprone-use-after-move): what was moved from is finished
    second.wait();
    EXPECT_EQ(values, std::vector<float>(1000, static_cast<float>(ranks().size())));
    EXPECT_TRUE(second.done());
}

TEST(async, two_communicators_at_once) {
    auto other = by_mpis_algorithms();
    auto here = start_many(ranks(), 10);
    auto there = start_many(other, 10);
    for (auto const i : shuffled(10, ranks().rank() + 7)) {
        there[i].handle.wait();
        here[i].handle.wait();
    }
    expect_right(ranks(), here);
    expect_right(other, there);
}

TEST(async, min_and_max_keep_nan_from_any_rank_on_any_way) {
    auto other = by_mpis_algorithms();
    for (auto* all : {&ranks(), &other})
        for (auto const how : {reduction::min, reduction::max})
            for (int culprit = 0; culprit < all->size(); ++culprit) {
                std::vector<float> values(7, static_cast<float>(all->rank()));
                std::vector<half> halves(7, half(1.0f));
                if (all->rank() == culprit) {
                    values[3] = std::numeric_limits<float>::quiet_NaN();
                    halves[3] = half(values[3]);
                }
                all->allreduce("f32", view_of(std::span(values)), how).wait();
                all->allreduce("f16", view_of(std::span(halves)), how).wait();
                EXPECT_TRUE(std::isnan(values[3]));
                EXPECT_TRUE(std::isnan(static_cast<float>(halves[3])));
                EXPECT_EQ(values[2], how == reduction::min ? 0.0f : static_cast<float>(all->size() - 1));
            }
}

/// Numbers whose sum depends on the order: all ranks, and all ways, must still agree to the last bit.
TEST(async, all_ranks_get_the_same_bits_at_every_size) {
    auto& all = ranks();
    std::vector<float> values(300000);
    std::mt19937 random(static_cast<unsigned>(all.rank()));
    std::normal_distribution<float> normal(0.0f, 1e3f);
    for (auto& value : values) value = normal(random);
    std::vector<float> sums(values.size());
    all.allreduce("large", view_of(std::span(values)), view_of(std::span(sums)), reduction::sum).wait();
    std::vector<float> in_pieces(values.size());
    for (std::size_t first = 0; first < values.size(); first += 700) {
        auto const count = std::min<std::size_t>(700, values.size() - first);
        all.allreduce("small", {values.data() + first, count}, {in_pieces.data() + first, count}, reduction::sum).wait();
    }
    EXPECT_EQ(sums, in_pieces);
    auto reference = sums;
    all.broadcast("rank 0's", view_of(std::span(reference)), 0).wait();
    EXPECT_EQ(sums, reference);
}

/// How often that process has gone to sleep by itself.
long sleeps_of(std::int64_t process) {
    std::ifstream status("/proc/" + std::to_string(process) + "/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("voluntary_ctxt_switches:")) return std::stol(line.substr(line.find(':') + 1));
    return 0;
}

TEST(async, who_waits_for_long_leaves_its_processor_to_others) {
    auto& all = ranks();
    if (all.backend() != "shm") GTEST_SKIP() << "over the others a wait moves messages";
    std::int64_t const own = ::getpid();
    std::vector<std::int64_t> processes(static_cast<std::size_t>(all.size()));
    all.allgather("processes", input_of(std::span(&own, 1)), view_of(std::span(processes))).wait();
    int const late = all.size() - 1;
    if (all.rank() == late) {
        constexpr long some = 30;
        auto const until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        for (int rank = 0; rank < late; ++rank) {
            auto const process = processes[static_cast<std::size_t>(rank)];
            long const before = sleeps_of(process);
            while (sleeps_of(process) < before + some && std::chrono::steady_clock::now() < until) ::sched_yield();
            EXPECT_GE(sleeps_of(process), before + some) << "rank " << rank;
        }
    }
    all.barrier().wait();
}

#ifdef MUSTER_HAVE_MPI
TEST(async, the_programs_own_traffic_is_left_alone) {
    if (ranks().backend() != "mpi") GTEST_SKIP() << "no MPI in this world";
    auto& all = ranks();
    int const next = (all.rank() + 1) % all.size();
    int const before = (all.rank() + all.size() - 1) % all.size();
    for (int tag = 0; tag < 8; ++tag) {
        // The same tags as ours, on the world's communicator, received from whoever sends.
        int got = -1, got_sum = 0;
        int const sent = 100 * tag + all.rank();
        MPI_Request requests[3];
        MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
        auto started = start_many(all, 6);
        MPI_Iallreduce(&sent, &got_sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
        for (auto const i : shuffled(started.size(), all.rank() + tag)) started[i].handle.wait();
        MPI_Isend(&sent, 1, MPI_INT, next, tag, MPI_COMM_WORLD, &requests[2]);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(got, 100 * tag + before);
        EXPECT_EQ(got_sum, 100 * tag * all.size() + all.size() * (all.size() - 1) / 2);
        expect_right(all, started);
    }
}

TEST(async, the_programs_error_handler_is_left_alone) {
    if (ranks().backend() != "mpi") GTEST_SKIP() << "no MPI in this world";
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
    EXPECT_EQ(handler, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
    MPI_Comm_get_errhandler(*static_cast<MPI_Comm const*>(ranks().native()), &handler);
    EXPECT_EQ(handler, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
}
#endif

}  // namespace

}  // namespace muster::test
