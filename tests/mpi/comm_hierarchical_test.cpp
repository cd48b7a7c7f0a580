// Reductions in steps over several nodes, which these ranks of one machine pretend to sit on by their identities.
// ranks: 3 4 6
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "alltoall_patterns.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/communicator.hpp"
#include "comm/tcp/tcp_backend.hpp"
#include "mpi_test.hpp"
#include "reduction_oracle.hpp"

namespace muster::test {

namespace {

using testing::HasSubstr;

/// `per_node` ranks on each node; the ranks dealt out in turns if `round_robin`.
communicator over_nodes(int per_node, bool round_robin = false, std::size_t from_bytes = 0,
                        std::vector<std::string> addresses = {}) {
    comm_options options = ranks().options();
    options.backend = "hierarchical";
    options.addresses = std::move(addresses);
    options.network_interface = "lo";
    options.hierarchical_bytes = from_bytes;
    return communicator::create(on_pretended_nodes(ranks().who(), per_node, round_robin), options);
}

/// Where each rank listens, as a store would tell it.
std::vector<std::string> addresses_of_ranks() {
    constexpr std::size_t longest = 256;
    auto own = tcp_address(ranks().who().host, "lo");
    own.resize(longest);
    std::vector<std::uint8_t> const mine(own.begin(), own.end());
    std::vector<std::uint8_t> all(longest * static_cast<std::size_t>(ranks().size()));
    ranks().allgather("addresses", input_of(std::span(mine)), view_of(std::span(all))).wait();
    std::vector<std::string> texts;
    for (std::size_t at = 0; at < all.size(); at += longest) texts.emplace_back(reinterpret_cast<char const*>(all.data() + at));
    return texts;
}

std::vector<int> nodes_of_this_world() {
    return ranks().size() == 6 ? std::vector{2, 3} : std::vector{2};  // ranks on each; of 3 ranks, 2 and 1
}

template <typename T>
class hierarchical : public testing::Test {};
using types = testing::Types<float, double, half, bfloat16, std::int32_t, std::int64_t, std::uint8_t, std::int8_t>;
TYPED_TEST_SUITE(hierarchical, types);

template <typename T>
void expect_reduced(communicator& all, std::size_t count, reduction how) {
    std::vector<T> in(count), out(count, as<T>(99));
    for (std::size_t i = 0; i < count; ++i) in[i] = as<T>(value(i, all.rank(), how));
    auto const untouched = in;
    all.allreduce("x", view_of(std::span(in)), view_of(std::span(out)), how).wait();
    for (std::size_t i = 0; i < count; ++i) {
        // An average of f16 is rounded on the node as well.
        if (std::is_same_v<T, half> && how == reduction::average)
            ASSERT_NEAR(static_cast<double>(static_cast<float>(out[i])), oracle(i, all.size(), how), 0.02);
        else
            ASSERT_EQ(out[i], as<T>(oracle(i, all.size(), how))) << i << " of " << count << ", " << to_string(how);
    }
    EXPECT_EQ(in, untouched);
    all.allreduce("x", view_of(std::span(in)), how).wait();
    EXPECT_EQ(in, out);
}

TYPED_TEST(hierarchical, allreduce) {
    for (int const per_node : nodes_of_this_world())
        for (bool const round_robin : {false, true}) {
            if (round_robin && ranks().size() % per_node != 0) continue;
            auto all = over_nodes(per_node, round_robin);
            EXPECT_EQ(all.backend(), "hierarchical");
            for (auto const how : {reduction::sum, reduction::average, reduction::min, reduction::max, reduction::product}) {
                if (how == reduction::average && !is_floating(dtype_of<TypeParam>())) continue;
                for (std::size_t const count : {0u, 1u, 5u, 20001u}) expect_reduced<TypeParam>(all, count, how);
            }
        }
}

TEST(hierarchical_use, factors_come_before_and_after) {
    auto all = over_nodes(2);
    for (auto const how : {reduction::sum, reduction::average, reduction::max}) {
        std::vector<double> values(1000);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(i, all.rank(), how);
        all.allreduce("x", view_of(std::span(values)), how, {.before = 0.5, .after = 4}).wait();
        for (std::size_t i = 0; i < values.size(); ++i) ASSERT_DOUBLE_EQ(values[i], 2 * oracle(i, all.size(), how));
    }
}

TEST(hierarchical_use, sums_that_the_node_or_the_world_cannot_hold_in_f16_are_averaged) {
    auto all = over_nodes(2);
    std::vector<half> values(100, half(60000.0f));
    all.allreduce("x", view_of(std::span(values)), reduction::average).wait();
    EXPECT_EQ(static_cast<float>(values[50]), 60000.0f);
}

TEST(hierarchical_use, alltoall_of_every_pattern) {
    if (ranks().size() > 5) GTEST_SKIP() << "patterns have 32 bits";
    auto by_mpi = over_nodes(2), by_tcp = over_nodes(2, false, 0, addresses_of_ranks());
    expect_alltoall_of_every_pattern(by_mpi);
    expect_alltoall_of_every_pattern(by_tcp);
}

/// Many at once, small and large, in steps and flat, waited for in another order on each rank: the stages must not mix.
void expect_many_in_flight(communicator all) {
    auto const n = static_cast<std::size_t>(all.size());
    std::vector<std::vector<float>> values(60);
    std::vector<float> gathered(n * 100), mine(100, static_cast<float>(all.rank()));
    std::vector<operation> started;
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i].assign((i * 7919) % 30000 + (i % 9 == 0 ? 700000u : 1u),
                         static_cast<float>(all.rank()) + static_cast<float>(i));
        auto const view = view_of(std::span(values[i]));
        if (i % 10 == 4)
            started.push_back(all.broadcast("b", view, static_cast<int>(i) % all.size()));
        else
            started.push_back(all.allreduce("r", view, reduction::sum));
    }
    started.push_back(all.allgather("g", view_of(std::span(mine)), view_of(std::span(gathered))));
    std::shuffle(started.begin(), started.end(), std::mt19937(static_cast<unsigned>(all.rank())));
    for (std::size_t i = 0; i < started.size(); ++i) {
        if (i % 3 == 0)
            while (!started[i].done()) all.progress();
        else
            started[i].wait();
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
        auto const expected = static_cast<float>(i % 10 == 4 ? i + i % n : i * n + n * (n - 1) / 2);
        ASSERT_TRUE(std::all_of(values[i].begin(), values[i].end(), [&](float each) { return each == expected; })) << i;
    }
    for (std::size_t i = 0; i < gathered.size(); ++i) ASSERT_EQ(gathered[i], static_cast<float>(i / 100));
}

TEST(hierarchical_use, many_in_flight_of_all_kinds) {
    expect_many_in_flight(over_nodes(2, false, 4096));
}

TEST(hierarchical_use, many_in_flight_go_across_by_tcp_where_addresses_are_given) {
    auto all = over_nodes(2, false, 4096, addresses_of_ranks());
    EXPECT_EQ(all.native(), nullptr) << "no MPI";
    expect_many_in_flight(std::move(all));
}

TEST(hierarchical_use, all_ranks_get_the_same_bits) {
    auto all = over_nodes(2);
    std::vector<float> sums(30000);
    std::mt19937 random(static_cast<unsigned>(all.rank()));
    std::normal_distribution<float> normal(0.0f, 1e3f);
    for (auto& each : sums) each = normal(random);
    all.allreduce("x", view_of(std::span(sums)), reduction::sum).wait();
    auto reference = sums;
    all.broadcast("rank 0's", view_of(std::span(reference)), 0).wait();
    EXPECT_EQ(sums, reference);
}

TEST(hierarchical_use, its_memory_is_reduced_in_whatever_numbers_of_ranks_the_nodes_have) {
    for (auto const& addresses : {std::vector<std::string>{}, addresses_of_ranks()}) {
        auto all = over_nodes(2, false, 0, addresses);  // of 3 ranks, 2 and 1
        auto const memory = all.allocate(1000 * sizeof(float));
        auto const values = memory.as<float>().first(1000);
        std::fill(values.begin(), values.end(), 1.0f);
        all.allreduce("x", view_of(values), reduction::sum).wait();
        EXPECT_EQ(std::count(values.begin(), values.end(), static_cast<float>(all.size())), 1000);
    }
}

TEST(hierarchical_use, process_sets_work) {
    auto all = over_nodes(2);
    std::vector<int> const two{0, all.size() - 1};
    auto set = all.include(two);
    if (!set) return;
    float one = 1;
    set.allreduce("x", view_of(std::span(&one, 1)), reduction::sum).wait();
    EXPECT_EQ(one, 2.0f);
}

TEST(hierarchical_use, a_late_rank_of_another_node_ends_in_an_error_with_the_tensor_s_name) {
    auto victims = over_nodes(2);
    std::vector<float> values(1000, 1.0f);
    auto const view = view_of(std::span(values));
    int const last = ranks().size() - 1;
    if (ranks().rank() == last) {
        ranks().barrier().wait();
        return;  // never comes
    }
    try {
        victims.allreduce("late.weight", view, reduction::sum).wait(duration{0.2});
        ADD_FAILURE() << "nothing was thrown";
    } catch (comm_error const& problem) {
        EXPECT_EQ(problem.code(), errc::timeout);
        EXPECT_THAT(problem.what(), HasSubstr("allreduce of \"late.weight\" (rank " + std::to_string(ranks().rank())));
    }
    ranks().barrier().wait();
}

}  // namespace

}  // namespace muster::test
