// The collectives that move different amounts between different ranks, and process sets, on every type.
// ranks: 1 2 3 4
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "alltoall_patterns.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/communicator.hpp"
#include "mpi_test.hpp"
#include "reduction_oracle.hpp"

namespace muster::test {

namespace {

using testing::HasSubstr;

/// Small whole numbers, whose sums over a few ranks are exact in every type.
double value(std::size_t i, int rank) {
    return static_cast<double>((i * 7 + static_cast<std::size_t>(rank) * 5) % 13);
}

template <typename T>
std::vector<T> inputs(std::size_t count, int rank) {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = as<T>(value(i, rank));
    return values;
}

double sum_of(std::size_t i, int size) {
    double sum = 0;
    for (int rank = 0; rank < size; ++rank) sum += value(i, rank);
    return sum;
}

std::vector<std::size_t> const counts{0, 1, 2, 3, 7, 1000, 100003};

template <typename T>
class kinds : public testing::Test {};
using types = testing::Types<float, double, half, bfloat16, std::int32_t, std::int64_t, std::uint8_t, std::int8_t>;
TYPED_TEST_SUITE(kinds, types);

TYPED_TEST(kinds, reducescatter) {
    using T = TypeParam;
    auto& all = ranks();
    for (std::size_t const count : counts) {
        auto const share = share_of(count, all.size(), all.rank());
        auto in = inputs<T>(count, all.rank());
        auto const untouched = in;
        std::vector<T> out(share.count, as<T>(99));
        all.reducescatter("x", view_of(std::span(in)), view_of(std::span(out)), reduction::sum).wait();
        for (std::size_t i = 0; i < share.count; ++i) ASSERT_EQ(out[i], as<T>(sum_of(share.first + i, all.size()))) << i;
        EXPECT_EQ(in, untouched);

        auto const place = std::span(in).subspan(share.first, share.count);
        all.reducescatter("in place", view_of(std::span(in)), view_of(place), reduction::max).wait();
        for (std::size_t i = 0; i < count; ++i) {
            double most = 0;
            for (int rank = 0; rank < all.size(); ++rank) most = std::max(most, value(i, rank));
            bool const mine = i >= share.first && i < share.first + share.count;
            ASSERT_EQ(in[i], mine ? as<T>(most) : untouched[i]) << i << " of " << count;
        }
    }
}

/// What allreduces and a broadcast of plain memory give, for all reductions of the type, bit for bit.
template <typename T>
void expect_as_in_plain_memory(communicator& all, std::span<T> in, std::span<T> out) {
    auto const values = inputs<T>(in.size(), all.rank());
    std::vector<T> expected(in.size());
    for (auto const how : {reduction::sum, reduction::average, reduction::min, reduction::max, reduction::product}) {
        if (how == reduction::average && !is_floating(dtype_of<T>())) continue;
        all.allreduce("plain", input_of(std::span(values)), view_of(std::span(expected)), how).wait();
        std::copy(values.begin(), values.end(), in.begin());
        all.allreduce("x", view_of(in), view_of(out), how).wait();
        ASSERT_EQ(std::memcmp(out.data(), expected.data(), out.size_bytes()), 0) << in.size() << " " << to_string(how);
    }
    std::copy(values.begin(), values.end(), out.begin());
    all.broadcast("x", view_of(out), all.size() - 1).wait();
    ASSERT_TRUE(std::equal(out.begin(), out.end(), inputs<T>(in.size(), all.size() - 1).begin()));
}

TYPED_TEST(kinds, shared_memory) {
    using T = TypeParam;
    auto& all = ranks();
    // One page and more than a chunk for each rank; from the second element on, so that nothing begins on a line.
    std::size_t const most = 400003;
    comm_buffer const first = all.allocate((most + 1) * sizeof(T)), second = all.allocate((most + 1) * sizeof(T));
    ASSERT_GE(first.as<T>().size(), most + 1);
    EXPECT_EQ(first.as<T>()[most], T{}) << "zeroed";
    for (std::size_t const count : {std::size_t{1}, std::size_t{33000}, most}) {
        auto const in = first.as<T>().subspan(1, count), out = second.as<T>().subspan(1, count);
        std::vector<T> plain(count);
        expect_as_in_plain_memory<T>(all, in, out);
        expect_as_in_plain_memory<T>(all, in, in);
        bool const odd = all.rank() % 2 == 1;
        expect_as_in_plain_memory<T>(all, odd ? std::span(plain) : in, odd ? std::span(plain) : in);
        expect_as_in_plain_memory<T>(all, odd ? in : std::span(plain), odd ? std::span(plain) : out);

        auto const values = inputs<T>(count, all.rank());
        std::copy(values.begin(), values.end(), in.begin());
        auto const share = share_of(count, all.size(), all.rank());
        auto const place = odd ? out.subspan(share.first, share.count) : in.subspan(share.first, share.count);
        all.reducescatter("x", view_of(in), view_of(place), reduction::sum).wait();
        for (std::size_t i = 0; i < share.count; ++i) ASSERT_EQ(place[i], as<T>(sum_of(share.first + i, all.size()))) << i;
    }
}

TYPED_TEST(kinds, allgather_of_different_counts) {
    using T = TypeParam;
    auto& all = ranks();
    for (std::size_t const step : {0u, 1u, 500u, 40000u}) {
        std::vector<std::size_t> per_rank;
        std::vector<T> expected;
        for (int rank = 0; rank < all.size(); ++rank) {
            per_rank.push_back(step * static_cast<std::size_t>((rank + 1) % 3));  // rank 2 gives nothing
            for (T const each : inputs<T>(per_rank.back(), rank)) expected.push_back(each);
        }
        auto const in = inputs<T>(per_rank[static_cast<std::size_t>(all.rank())], all.rank());
        std::vector<T> out(expected.size());
        all.allgather("x", input_of(std::span(in)), view_of(std::span(out)), per_rank).wait();
        EXPECT_EQ(out, expected);

        std::vector<T> gathered(expected.size());
        auto const first = std::accumulate(per_rank.begin(), per_rank.begin() + all.rank(), std::size_t{0});
        auto const place = std::span(gathered).subspan(first, in.size());
        std::copy(in.begin(), in.end(), place.begin());
        all.allgather("in place", view_of(place), view_of(std::span(gathered)), per_rank).wait();
        EXPECT_EQ(gathered, expected);
    }
}

/// How many elements `from` sends to `to`: some pairs nothing, one of them much.
std::size_t split(int from, int to, std::size_t step) {
    return step * static_cast<std::size_t>((from * 3 + to) % 4);
}

TYPED_TEST(kinds, alltoall) {
    using T = TypeParam;
    auto& all = ranks();
    for (std::size_t const step : {0u, 1u, 300u, 30000u}) {
        std::vector<std::size_t> send_counts, receive_counts;
        std::vector<T> in, expected;
        for (int other = 0; other < all.size(); ++other) {
            send_counts.push_back(split(all.rank(), other, step));
            receive_counts.push_back(split(other, all.rank(), step));
            for (T const each : inputs<T>(send_counts.back(), all.rank() * 10 + other)) in.push_back(each);
            for (T const each : inputs<T>(receive_counts.back(), other * 10 + all.rank())) expected.push_back(each);
        }
        std::vector<T> out(expected.size());
        all.alltoall("x", view_of(std::span(in)), send_counts, view_of(std::span(out)), receive_counts).wait();
        EXPECT_EQ(out, expected);
    }
}

TEST(kinds_with_zeros, alltoall_of_every_pattern) {
    expect_alltoall_of_every_pattern(ranks());
}

TYPED_TEST(kinds, exchange) {
    using T = TypeParam;
    auto& all = ranks();
    // Every rank with every other, in an order in which the two of each pair meet at their own pace.
    for (std::size_t const step : {0u, 1u, 1000u, 50000u})
        for (int distance = 0; distance < all.size(); ++distance) {
            int const peer = (distance - all.rank() + all.size()) % all.size();
            auto const in = inputs<T>(step + static_cast<std::size_t>(peer == all.rank() ? 0 : all.rank()), all.rank());
            std::vector<T> out(step + static_cast<std::size_t>(peer == all.rank() ? 0 : peer));
            all.sendrecv("x", peer, input_of(std::span(in)), view_of(std::span(out))).wait();
            EXPECT_EQ(out, inputs<T>(out.size(), peer));
        }
}

TEST(kinds_at_once, all_of_them_in_flight) {
    auto& all = ranks();
    auto const n = static_cast<std::size_t>(all.size());
    std::size_t const count = 20000;
    std::vector<std::size_t> const even(n, count);
    std::vector<float> in = inputs<float>(count * n, all.rank());
    std::vector<float> scattered(count), gathered(count * n), exchanged(count), all_to_all(count * n), sum(count * n);
    int const peer = all.size() - 1 - all.rank();
    std::vector<operation> started;
    started.push_back(all.sendrecv("e", peer, {in.data(), count}, view_of(std::span(exchanged))));
    started.push_back(all.alltoall("t", view_of(std::span(in)), even, view_of(std::span(all_to_all)), even));
    started.push_back(all.reducescatter("r", view_of(std::span(in)), view_of(std::span(scattered)), reduction::sum));
    started.push_back(all.allgather("g", {in.data(), count}, view_of(std::span(gathered)), even));
    started.push_back(all.allreduce("a", view_of(std::span(in)), view_of(std::span(sum)), reduction::sum));
    started.push_back(all.barrier());
    std::shuffle(started.begin(), started.end(), std::mt19937(static_cast<unsigned>(all.rank())));
    for (auto& each : started) each.wait();
    auto const own = static_cast<std::size_t>(all.rank()) * count;
    EXPECT_EQ(exchanged, inputs<float>(count, peer));
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(scattered[i], static_cast<float>(sum_of(own + i, all.size())));
        for (std::size_t r = 0; r < n; ++r) {
            ASSERT_EQ(gathered[r * count + i], static_cast<float>(value(i, static_cast<int>(r))));
            ASSERT_EQ(all_to_all[r * count + i], static_cast<float>(value(own + i, static_cast<int>(r))));
        }
    }
    for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], static_cast<float>(sum_of(i, all.size())));
}

template <typename T>
void expect_scaled(communicator& all) {
    for (std::size_t const count : {3u, 5000u}) {
        auto const in = inputs<T>(count, all.rank());
        std::vector<T> out(count);
        for (auto const how : {reduction::sum, reduction::max}) {
            all.allreduce("x", input_of(std::span(in)), view_of(std::span(out)), how, {.before = 0.5, .after = 4}).wait();
            for (std::size_t i = 0; i < count; ++i) {
                double expected = sum_of(i, all.size());
                if (how == reduction::max) {
                    expected = 0;
                    for (int rank = 0; rank < all.size(); ++rank) expected = std::max(expected, value(i, rank));
                }
                ASSERT_EQ(out[i], as<T>(2 * expected)) << i;
            }
        }
    }
}

TEST(scaled, allreduce_on_every_way) {
    comm_options options = ranks().options();
    options.backend = ranks().backend();
    options.direct_ranks = 0;
    auto by_mpis_algorithms = communicator::create(ranks().who(), options);
    for (auto* all : {&ranks(), &by_mpis_algorithms}) {
        expect_scaled<float>(*all);
        expect_scaled<double>(*all);
        expect_scaled<half>(*all);
        expect_scaled<bfloat16>(*all);
    }
}

TEST(process_sets, have_ranks_and_traffic_of_their_own) {
    auto& all = ranks();
    std::vector<int> odd_downwards;
    for (int rank = all.size() - 1; rank >= 0; --rank)
        if (rank % 2 == 1 || all.size() == 1) odd_downwards.push_back(rank);
    auto set = all.include(odd_downwards);
    bool const inside = all.rank() % 2 == 1 || all.size() == 1;
    EXPECT_EQ(static_cast<bool>(set), inside);
    if (!inside) {
        EXPECT_EQ(set.rank(), -1);
        EXPECT_THROW(set.barrier().wait(), comm_error);
        all.barrier().wait();
        return;
    }
    auto const size = static_cast<int>(odd_downwards.size());
    EXPECT_EQ(set.size(), size);
    EXPECT_EQ(odd_downwards[static_cast<std::size_t>(set.rank())], all.rank());
    EXPECT_EQ(set.host_of(set.rank()), all.host_of(all.rank()));
    std::int32_t const mine = all.rank();
    std::vector<std::int32_t> members(odd_downwards.size());
    set.allgather("who", input_of(std::span(&mine, 1)), view_of(std::span(members))).wait();
    EXPECT_EQ(std::vector<int>(members.begin(), members.end()), odd_downwards);
    all.barrier().wait();
}

TEST(process_sets, of_sets_outlive_them) {
    auto& all = ranks();
    std::vector<int> everybody(static_cast<std::size_t>(all.size()));
    std::iota(everybody.rbegin(), everybody.rend(), 0);
    auto turned = all.include(everybody);
    auto straight = turned.include(everybody);
    turned = {std::move(straight)};
    EXPECT_EQ(turned.rank(), all.rank());
    std::int32_t one = 1;
    turned.allreduce("count", view_of(std::span(&one, 1)), reduction::sum).wait();
    EXPECT_EQ(one, all.size());
}

TEST(process_sets, lists_that_differ_are_refused_on_all_ranks) {
    auto& all = ranks();
    if (all.size() == 1) GTEST_SKIP() << "nobody to differ from";
    std::vector<int> const mine{all.rank() == 0 ? 0 : 1};
    try {
        all.include(mine);
        FAIL();
    } catch (comm_error const& problem) {
        EXPECT_EQ(problem.code(), errc::peer_failed);
        EXPECT_THAT(problem.what(), HasSubstr("the ranks gave different lists of ranks"));
    }
    all.barrier().wait();  // it still works
}

}  // namespace

}  // namespace muster::test
