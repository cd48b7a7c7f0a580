// The response cache, and shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/exchange/negotiation/response_cache.hpp"
#include "exchange_requests.hpp"

namespace muster {

namespace {

using namespace test;
using testing::ElementsAre;

TEST(response_cache, the_key_is_all_of_the_request) {
    response_cache cache;
    auto const mine = shared(tensor("w"));
    auto const at = cache.insert(agreed(tensor("w")), mine);
    EXPECT_TRUE(cache.holds(at, mine));
    EXPECT_FALSE(cache.holds(at, shared(tensor("w"))));  // another object is to be compared
    EXPECT_FALSE(cache.holds(at + 1, mine));
    EXPECT_EQ(cache.find("w"), at);
    EXPECT_TRUE(cache.repeats(at, tensor("w")));
    EXPECT_FALSE(cache.repeats(at, tensor("w", 5)));
    EXPECT_FALSE(cache.repeats(at, tensor("w", 4, exchange_kind::broadcast)));
    auto other = tensor("w");
    other.scale.after = 2;
    EXPECT_FALSE(cache.repeats(at, other));
    other = tensor("w");
    other.wire = compression::bf16;
    EXPECT_FALSE(cache.repeats(at, other));
    other = tensor("w");
    other.places = {4096};  // it may lie elsewhere
    EXPECT_TRUE(cache.repeats(at, other));
    cache.erase(at);
    EXPECT_FALSE(cache.find("w"));
    EXPECT_FALSE(cache.holds(at, mine));
    EXPECT_EQ(cache.insert(agreed(tensor("v")), shared(tensor("v"))), at);  // positions are used again
}

TEST(response_cache, ten_thousand_names_that_take_turns_fit_after_two_rounds) {
    response_cache cache(1024);
    std::size_t misses = 0;
    for (int round = 0; round < 4; ++round) {
        misses = 0;
        for (int i = 0; i < 10000; ++i) {
            std::string const name = "t" + std::to_string(i);
            if (auto const at = cache.find(name)) {
                cache.touch(*at);
            } else {
                ++misses;
                cache.insert(agreed(tensor(name)), shared(tensor(name)));
            }
        }
        if (round >= 2) {
            EXPECT_EQ(misses, 0u) << round;
        }
    }
    EXPECT_LE(cache.capacity(), 16384u);
}

TEST(response_cache, what_was_used_last_stays) {
    response_cache cache(2);
    auto const first = cache.insert(agreed(tensor("first")), shared(tensor("first")));
    cache.insert(agreed(tensor("second")), shared(tensor("second")));
    cache.touch(first);
    cache.insert(agreed(tensor("third")), shared(tensor("third")));
    EXPECT_TRUE(cache.find("first"));
    EXPECT_FALSE(cache.find("second"));
}

TEST(response_cache, names_that_never_come_back_keep_it_small) {
    response_cache cache(100);
    for (int i = 0; i < 5000; ++i) {
        std::string const name = "loss." + std::to_string(i);
        cache.insert(agreed(tensor(name)), shared(tensor(name)));
        if (i > 0) {
            ASSERT_TRUE(cache.find("loss." + std::to_string(i - 1)));
        }
    }
    EXPECT_EQ(cache.capacity(), 100u);
    EXPECT_EQ(cache.used(), 100u);
    EXPECT_EQ(cache.positions(), 100u);
}

TEST(tensor_shape, extents_are_checked) {
    std::int64_t const good[]{2, 3, 4};
    EXPECT_EQ(make_shape(good).elements(), 24);
    EXPECT_EQ(make_shape(good).row_elements(), 12);
    EXPECT_EQ(to_string(make_shape(good)), "[2, 3, 4]");
    EXPECT_EQ(make_shape({}).elements(), 1);
    std::int64_t const negative[]{2, -1}, huge[]{std::int64_t{1} << 40, std::int64_t{1} << 40, 0};
    EXPECT_THROW(make_shape(negative), error);
    EXPECT_THROW(make_shape(huge), error);
    EXPECT_THROW(make_shape(std::vector<std::int64_t>(9, 1)), error);
}

}  // namespace

}  // namespace muster
