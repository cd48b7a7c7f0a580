// Named tensors from any thread in any order.
// ranks: 1 2 4
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "comm/backend/comm_error.hpp"
#include "comm/exchange/exchange.hpp"
#include "mpi_test.hpp"
#include "quick_exchange.hpp"

namespace muster::test {

namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

/// While an exchange lives, only its thread uses the ranks: tests meet by its barrier.
struct exchanging : testing::Test {
    exchange all{ranks().who(), quick()};
    int const rank = all.rank(), size = all.size();
};

std::vector<float> filled(std::size_t count, float value) {
    return std::vector<float>(count, value);
}

std::string message_of(errc code, std::function<void()> const& body) {
    try {
        body();
    } catch (comm_error const& problem) {
        EXPECT_EQ(problem.code(), code) << problem.what();
        return problem.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
}

/// Some end here before the next is asked for, and there after it.
TEST_F(exchanging, many_barriers_are_in_flight) {
    for (int round = 0; round < 300; ++round) {
        std::vector<exchange_handle> handles;
        for (int i = 0; i < (round % 100 == 99 ? 40 : 3); ++i) {
            handles.push_back(all.barrier());
            if ((round + rank) % 2 == 0) handles.back().wait_for(duration{20e-6});
        }
        for (auto const& each : handles) each.wait(duration{20});
    }
}

TEST_F(exchanging, tensors_submitted_in_opposite_orders_meet_by_name) {
    constexpr int count = 50;
    std::vector<std::vector<float>> tensors;
    for (int i = 0; i < count; ++i) tensors.push_back(filled(static_cast<std::size_t>(i * 7 + 1), static_cast<float>(i + rank)));
    for (int step = 0; step < 3; ++step) {
        std::vector<exchange_handle> handles;
        for (int k = 0; k < count; ++k) {
            auto const i = static_cast<std::size_t>(rank % 2 == 0 ? k : count - 1 - k);
            std::fill(tensors[i].begin(), tensors[i].end(), static_cast<float>(static_cast<int>(i) + rank));
            auto const view = view_of(std::span(tensors[i]));
            handles.push_back(all.allreduce("t" + std::to_string(i), view, view, reduction::sum));
        }
        for (auto const& each : handles) each.wait();
        for (int i = 0; i < count; ++i) {
            float const expected = static_cast<float>(size * i + size * (size - 1) / 2);
            for (float const value : tensors[static_cast<std::size_t>(i)]) ASSERT_EQ(value, expected) << i;
        }
    }
    auto const counts = all.count();
    EXPECT_EQ(counts.tensors, 150u);
    EXPECT_EQ(counts.cache_hits, 100u);
    EXPECT_EQ(counts.cache_misses, 50u);
}

TEST_F(exchanging, every_reduction_and_scaling_out_of_place) {
    std::vector<double> const in{1.0 + rank, 2.0, -1.0 - rank};
    auto const check = [&](reduction how, std::vector<double> const& expected, scaling scale = {}) {
        std::vector<double> out(in.size());
        all.allreduce("x", input_of(std::span(in)), view_of(std::span(out)), how, {.scale = scale}).wait();
        for (std::size_t i = 0; i < in.size(); ++i) EXPECT_DOUBLE_EQ(out[i], expected[i]) << to_string(how) << i;
    };
    double sum = 0, product = 1;
    for (int r = 0; r < size; ++r) {
        sum += 1.0 + r;
        product *= 1.0 + r;
    }
    double const n = size, twos = std::pow(2.0, n), sign = size % 2 == 0 ? 1 : -1;
    check(reduction::sum, {sum, 2 * n, -sum});
    check(reduction::average, {sum / n, 2, -sum / n});
    check(reduction::min, {1, 2, -n});
    check(reduction::max, {n, 2, -1});
    check(reduction::product, {product, twos, sign * product});
    check(reduction::sum, {6 * sum, 12 * n, -6 * sum}, {2, 3});
}

TEST_F(exchanging, a_group_is_reduced_together) {
    std::vector<float> a(3, 1.0f), b(5, 2.0f);
    std::vector<std::int32_t> c(2, rank);
    named_tensor const group[]{{"a", view_of(std::span(a)), view_of(std::span(a))},
                               {"b", view_of(std::span(b)), view_of(std::span(b))},
                               {"c", view_of(std::span(c)), view_of(std::span(c))}};
    all.allreduce_group("abc", group, reduction::sum).wait();
    EXPECT_EQ(a[2], static_cast<float>(size));
    EXPECT_EQ(b[4], static_cast<float>(2 * size));
    EXPECT_EQ(c[1], size * (size - 1) / 2);
}

TEST_F(exchanging, allgather_of_uneven_rows) {
    auto const rows = static_cast<std::size_t>(rank + 1);
    for (int step = 0; step < 2; ++step) {
        std::vector<std::int64_t> const in(rows * 2, rank);
        std::int64_t const extents[]{rank + 1, 2};
        auto const handle = all.allgather("rows", input_of(std::span(in)), {}, {.shape = make_shape(extents)});
        handle.wait();
        std::vector<std::int64_t> expected, expected_rows;
        for (int r = 0; r < size; ++r) {
            expected.insert(expected.end(), static_cast<std::size_t>(2 * (r + 1)), r);
            expected_rows.push_back(r + 1);
        }
        auto const* const data = static_cast<std::int64_t const*>(handle.result().data);
        EXPECT_THAT(std::vector(data, data + handle.result().count), ElementsAreArray(expected));
        EXPECT_THAT(handle.rows(), ElementsAreArray(expected_rows));
    }
}

TEST_F(exchanging, broadcast_reducescatter_alltoall) {
    int const root = size - 1;
    std::vector<std::int32_t> value(4, rank);
    all.broadcast("b", view_of(std::span(value)), view_of(std::span(value)), root).wait();
    EXPECT_EQ(value[3], root);

    // 3 rows for each rank and one more, of 2: rows are not cut
    std::int64_t const extents[]{3 * size + 1, 2};
    std::vector<float> in(static_cast<std::size_t>(extents[0] * 2));
    std::iota(in.begin(), in.end(), 0.0f);
    auto const share = share_of(static_cast<std::size_t>(extents[0]), size, rank);
    auto const scattered = all.reducescatter("rs", view_of(std::span(in)), {}, reduction::sum, {.shape = make_shape(extents)});
    scattered.wait();
    ASSERT_EQ(scattered.result().count, share.count * 2);
    auto const* const got = static_cast<float const*>(scattered.result().data);
    for (std::size_t i = 0; i < share.count * 2; ++i)
        EXPECT_EQ(got[i], static_cast<float>(size) * static_cast<float>(share.first * 2 + i));

    // rank r sends r + s rows to rank s
    std::vector<std::int64_t> splits, rows;
    std::vector<std::int32_t> out, expected;
    for (int s = 0; s < size; ++s) {
        splits.push_back(rank + s);
        out.insert(out.end(), static_cast<std::size_t>(rank + s), 100 * rank + s);
        rows.push_back(rank + s);
        expected.insert(expected.end(), static_cast<std::size_t>(rank + s), 100 * s + rank);
    }
    auto const exchanged = all.alltoall("a2a", view_of(std::span(out)), splits);
    exchanged.wait();
    EXPECT_THAT(exchanged.rows(), ElementsAreArray(rows));
    auto const* const data = static_cast<std::int32_t const*>(exchanged.result().data);
    EXPECT_THAT(std::vector(data, data + exchanged.result().count), ElementsAreArray(expected));
}

TEST_F(exchanging, what_differs_is_told_on_every_rank_and_the_exchange_goes_on) {
    if (size == 1) GTEST_SKIP() << "nobody to differ from";
    std::vector<float> tensor(rank == 1 ? 5 : 4, 1.0f);
    auto const view = view_of(std::span(tensor));
    auto const message = message_of(errc::peer_failed, [&] { all.allreduce("w", view, view, reduction::sum).wait(); });
    EXPECT_THAT(message, HasSubstr("allreduce of \"w\": shape [4] on rank"));
    EXPECT_THAT(message, HasSubstr("but shape [5] on rank 1 ("));
    std::vector<float> good(4, 1.0f);
    auto const good_view = view_of(std::span(good));
    all.allreduce("w", good_view, good_view, reduction::sum).wait();
    EXPECT_EQ(good[0], static_cast<float>(size));
    // now it is cached: the same name with another operation on one rank must not be taken for it
    auto const other = message_of(errc::peer_failed, [&] {
        (rank == 0 ? all.broadcast("w", good_view, good_view, 0) : all.allreduce("w", good_view, good_view, reduction::sum))
            .wait();
    });
    EXPECT_THAT(other, HasSubstr("operation broadcast on rank 0"));
    all.barrier().wait();
}

TEST_F(exchanging, a_name_in_flight_is_refused) {
    std::vector<float> tensor(4, 1.0f);
    auto const view = view_of(std::span(tensor));
    if (rank == 0 && size > 1) {
        auto const first = all.allreduce("x", view, view, reduction::sum);
        std::vector<float> second(4);
        EXPECT_THAT(
            message_of(errc::usage,
                       [&] { all.allreduce("x", view_of(std::span(second)), view_of(std::span(second)), reduction::sum); }),
            HasSubstr("in flight"));
        all.barrier().wait();
        first.wait();
    } else {
        all.barrier().wait();
        all.allreduce("x", view, view, reduction::sum).wait();
    }
    EXPECT_EQ(tensor[0], static_cast<float>(size));
}

TEST_F(exchanging, joined_ranks_take_part_with_zeros) {
    int const steps = rank + 1;
    std::vector<float> tensor(6);
    auto const view = view_of(std::span(tensor));
    for (int step = 0; step < steps; ++step) {
        std::fill(tensor.begin(), tensor.end(), 1.0f);
        all.allreduce("uneven", view, view, reduction::sum).wait();
        EXPECT_EQ(tensor[5], static_cast<float>(size - step));  // ranks 0 … step-1 have joined
        std::vector<std::int32_t> const mine(2, rank);
        auto const gathered = all.allgather("rows", input_of(std::span(mine)));
        gathered.wait();
        EXPECT_EQ(gathered.result().count, static_cast<std::size_t>(2 * (size - step)));
        EXPECT_EQ(gathered.rows()[0], step == 0 ? 2 : 0);
    }
    auto const joined = all.join();
    joined.wait();
    EXPECT_EQ(joined.number(), size - 1);
    std::fill(tensor.begin(), tensor.end(), 1.0f);
    all.allreduce("uneven", view, view, reduction::sum).wait();
    EXPECT_EQ(tensor[0], static_cast<float>(size));
}

TEST_F(exchanging, process_sets_work_beside_each_other) {
    std::vector<int> even, reversed;
    for (int r = 0; r < size; r += 2) even.push_back(r);
    for (int r = size; r-- > 0;) reversed.push_back(r);
    int const evens = all.add_process_set(even);
    int const backwards = all.add_process_set(reversed);
    std::vector<float> tensor(10, static_cast<float>(rank)), other(10, 1.0f);
    auto const view = view_of(std::span(tensor)), other_view = view_of(std::span(other));
    EXPECT_EQ(all.rank_in(backwards), size - 1 - rank);
    auto const whole = all.allreduce("same name", other_view, other_view, reduction::sum);
    if (rank % 2 == 0)
        all.allreduce("same name", view, view, reduction::max, {.set = evens}).wait();
    else
        EXPECT_THAT(message_of(errc::usage, [&] { all.allreduce("same name", view, view, reduction::max, {.set = evens}); }),
                    HasSubstr("not a member"));
    whole.wait();
    EXPECT_EQ(other[0], static_cast<float>(size));
    if (rank % 2 == 0) {
        EXPECT_EQ(tensor[0], static_cast<float>(even.back()));
    }
    std::vector<std::int32_t> root(1, rank);
    all.broadcast("root", view_of(std::span(root)), view_of(std::span(root)), 0, {.set = backwards}).wait();
    EXPECT_EQ(root[0], size - 1);
}

TEST(exchange_options, that_differ_are_told_on_every_rank) {
    if (ranks().size() < 2) GTEST_SKIP() << "one rank agrees with itself";
    // And it is what the second half of this leaves to be chosen for host memory.
    if (ranks().backend() != "shm")
        GTEST_SKIP() << "an exchange that fails over MPI leaves it unfinalised, so that the run fails";
    bool const is_last = ranks().rank() == ranks().size() - 1;
    auto const told = [](exchange_options const& options) -> std::string {
        try {
            exchange const all(ranks().who(), options);
        } catch (comm_error const& problem) {
            EXPECT_EQ(problem.code(), errc::usage);
            return problem.what();
        }
        return "nothing";
    };
    auto options = quick();
    if (is_last) options.fusion_bytes = 4096;
    EXPECT_THAT(told(options), HasSubstr("the option fusion_bytes of the exchange is 16777216 on rank 0"));
}

TEST_F(exchanging, adasum_of_equal_vectors_is_the_vector) {
    std::vector<float> tensor{1.0f, -2.0f, 3.0f};
    auto const view = view_of(std::span(tensor));
    all.allreduce("adasum", view, view, reduction::adasum).wait();
    EXPECT_NEAR(tensor[1], -2.0f, 1e-6);
}

}  // namespace

}  // namespace muster::test
