// The tables of muster-bench collectives: sizes of gradients, bandwidths, comparisons.
#include "bench/collectives_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "bench/gradient_sets.hpp"
#include "bench/mnist_network.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

TEST(gradient_sets, have_the_published_numbers_of_parameters) {
    EXPECT_EQ(gradients_of("resnet50").elements.size(), 161u);
    EXPECT_EQ(gradients_of("resnet50").parameters(), 25'557'032u);
    EXPECT_EQ(gradients_of("gpt2").elements.size(), 148u);
    EXPECT_EQ(gradients_of("gpt2").parameters(), 124'439'808u);
    EXPECT_EQ(gradients_of("cifar").parameters(), 269'722u);
    EXPECT_EQ(gradients_of("mnist").parameters(), 21'840u);
    EXPECT_THROW(gradients_of("vgg"), error);
}

collectives_results sample() {
    collectives_results results;
    results.ranks = 2;
    results.triad_gbs = 20;
    results.jobs = {{"shm", "muster", true}, {"mpi", "muster", true}, {"openmpi", "Open MPI", false}, {"mpich", "MPICH", false}};
    auto const add = [&](std::string const& job, std::size_t bytes, double us) {
        results.cells.push_back({job, bytes, 1, 1, {us, us, us * 2}, {us}, 0, 0});
    };
    add("shm", 8, 1);
    add("mpi", 8, 0.5);
    add("openmpi", 8, 4);
    add("mpich", 8, 2);
    add("shm", 1 << 26, 40e3);
    add("mpich", 1 << 26, 20e3);
    return results;
}

TEST(collectives_table, compares_with_the_fastest_peer_and_not_with_our_own) {
    auto const all = compare_with_peers(sample(), "shm");
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].best, "mpich");
    EXPECT_DOUBLE_EQ(all[0].best_us, 2);
    EXPECT_DOUBLE_EQ(mean_advantage(all), 1.0) << "twice as fast and half as fast";
    EXPECT_EQ(mean_advantage({}), 0);
}

TEST(collectives_table, counts_as_nccl_tests_do) {
    EXPECT_DOUBLE_EQ(bus_factor(2), 1);
    EXPECT_DOUBLE_EQ(bus_factor(4), 1.5);
    EXPECT_DOUBLE_EQ(bound_us(1000000, 2, 7), 1000);
    auto const text = describe(sample());
    EXPECT_THAT(text, HasSubstr("count  type  redop  root  by "));
    EXPECT_THAT(text, HasSubstr("59%")) << "64 MiB x 7 / 20 GB/s of 40 ms";
    EXPECT_THAT(text, HasSubstr("shm: 1.00 times as fast"));
    EXPECT_EQ(to_json(sample())["cells"].size(), 6u);
}

}  // namespace
}  // namespace muster
