#include "bench/scaling/net_request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/error.hpp"
#include "bench/tools/commands.hpp"
#include "bench/tools/gradient_sets.hpp"

namespace muster {
namespace {

TEST(training_protocol, is_found_by_name_and_others_are_told_with_all_names) {
    auto const published = training_protocol_named("published");
    EXPECT_EQ(published.epochs, 32);
    EXPECT_TRUE(published.averages_loss);
    EXPECT_EQ(training_protocol_named("strong").series, work_series::strong);
    EXPECT_TRUE(training_protocol_named("weak").judged.rate);
    try {
        training_protocol_named("quick");
        FAIL();
    } catch (error const& e) {
        EXPECT_EQ(e.code(), errc::usage);
        for (auto const& row : training_protocols()) EXPECT_THAT(e.what(), testing::HasSubstr(std::string(row.name)));
    }
}

double work_of(gradient_set const& set) {
    return std::accumulate(set.work.begin(), set.work.end(), 0.0);
}

// ResNet-50 is known to take 4.1 billion multiplications for an image, GPT-2 small about as many for a token as it has parameters.
TEST(gradient_sets, work_of_timed_networks_is_that_of_their_layers) {
    for (auto const* name : {"resnet50", "gpt2-small"}) {
        EXPECT_TRUE(is_timed_network(name));
        auto const set = gradients_of(name);
        EXPECT_EQ(set.work.size(), set.elements.size());
    }
    EXPECT_NEAR(work_of(gradients_of("resnet50")), 4.09e9, 0.02e9);
    EXPECT_NEAR(work_of(gradients_of("gpt2-small")), 124e6, 1e6);
    EXPECT_EQ(gradients_of("gpt2-small").work.front(), 0) << "the tokens' table is ready last, after no work of its own";
    EXPECT_FALSE(is_timed_network("mnist"));
}

}  // namespace
}  // namespace muster
