// Every collective on every type, against sums computed alone in double.
// ranks: 1 2 3 4
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "comm/communicator.hpp"
#include "mpi_test.hpp"
#include "reduction_oracle.hpp"

namespace muster::test {

namespace {

template <typename T>
std::vector<T> inputs(std::size_t count, int rank, reduction how) {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = as<T>(value(i, rank, how));
    return values;
}

std::vector<reduction> const reductions{reduction::sum, reduction::average, reduction::min, reduction::max, reduction::product};
std::vector<std::size_t> const counts{0, 1, 7, 1000, 100003};

template <typename T>
void expect_allreduce(communicator& all, std::vector<T> const& got, reduction how) {
    for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(got[i], as<T>(oracle(i, all.size(), how))) << "element " << i << " of " << got.size() << ", " << to_string(how);
}

template <typename T>
class collectives : public testing::Test {};
using types = testing::Types<float, double, half, bfloat16, std::int32_t, std::int64_t, std::uint8_t>;
TYPED_TEST_SUITE(collectives, types);

template <typename T>
void allreduce_all(communicator& all) {
    for (reduction const how : reductions) {
        if (how == reduction::average && !is_floating(dtype_of<T>())) continue;
        for (std::size_t const count : counts) {
            auto const in = inputs<T>(count, all.rank(), how);
            std::vector<T> out(count, as<T>(99));
            all.allreduce("out of place", input_of(std::span(in)), view_of(std::span(out)), how).wait();
            expect_allreduce<T>(all, out, how);
            EXPECT_EQ(in, inputs<T>(count, all.rank(), how));
            auto inout = in;
            all.allreduce("in place", view_of(std::span(inout)), how).wait();
            expect_allreduce<T>(all, inout, how);
        }
    }
}

TYPED_TEST(collectives, allreduce) {
    allreduce_all<TypeParam>(ranks());
}

TYPED_TEST(collectives, allreduce_by_mpis_own_algorithm) {
    comm_options options = ranks().options();
    options.backend = ranks().backend();
    options.direct_ranks = 0;
    auto all = communicator::create(ranks().who(), options);
    allreduce_all<TypeParam>(all);
}

TYPED_TEST(collectives, broadcast) {
    auto& all = ranks();
    for (int root = 0; root < all.size(); ++root)
        for (std::size_t const count : counts) {
            auto values = inputs<TypeParam>(count, all.rank(), reduction::sum);
            all.broadcast("values", view_of(std::span(values)), root).wait();
            EXPECT_EQ(values, inputs<TypeParam>(count, root, reduction::sum));
        }
}

TYPED_TEST(collectives, allgather) {
    auto& all = ranks();
    for (std::size_t const count : counts) {
        std::vector<TypeParam> expected;
        for (int rank = 0; rank < all.size(); ++rank)
            for (auto const& each : inputs<TypeParam>(count, rank, reduction::sum)) expected.push_back(each);
        auto const in = inputs<TypeParam>(count, all.rank(), reduction::sum);
        std::vector<TypeParam> out(expected.size());
        all.allgather("values", input_of(std::span(in)), view_of(std::span(out))).wait();
        EXPECT_EQ(out, expected);

        std::vector<TypeParam> gathered(expected.size());
        auto const place = std::span(gathered).subspan(count * static_cast<std::size_t>(all.rank()), count);
        std::copy(in.begin(), in.end(), place.begin());
        all.allgather("values in place", view_of(place), view_of(std::span(gathered))).wait();
        EXPECT_EQ(gathered, expected);
    }
}

TEST(collectives, barriers_come_after_each_other) {
    for (int i = 0; i < 100; ++i) ranks().barrier().wait();
}

}  // namespace

}  // namespace muster::test
