// What an exchange remembers of the steps before: the response cache, the static graph, what tuning has found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/exchange/negotiation/autotuner.hpp"
#include "comm/exchange/negotiation/graph_recorder.hpp"
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

/// Runs it on a machine on which `speed` says how fast a setting is.
template <typename Speed>
tuning tune(tuning const& start, Speed&& speed) {
    autotuner tuner(start);
    for (int i = 0; i < 10000 && !tuner.finished(); ++i) tuner.sample(speed(tuner.current()));
    EXPECT_TRUE(tuner.finished());
    return tuner.current();
}

TEST(autotuner, it_finds_what_is_faster_and_keeps_the_start_where_nothing_is) {
    tuning const start{16u << 20, duration{1e-3}};
    EXPECT_THAT(autotuner(start).candidates(), testing::Contains(start));
    EXPECT_EQ(tune(start, [](tuning const&) { return 1e9; }), start);
    EXPECT_EQ(tune(start, [](tuning const& t) { return t.fusion_bytes > 16u << 20 ? 1.02e9 : 1e9; }), start);  // not by enough
    EXPECT_EQ(tune(start, [](tuning const& t) { return t.fusion_bytes > 16u << 20 ? 2e9 : 1e9; }).fusion_bytes, 64u << 20);
    EXPECT_EQ(tune(start, [&](tuning const& t) { return t == start ? 1e9 : 0.9e9; }), start);
}

TEST(autotuner, luck_is_not_speed) {
    tuning const start{16u << 20, duration{1e-3}};
    std::uint32_t state = 7;
    auto const noise = [&] { return static_cast<double>((state = state * 1664525u + 1013904223u) >> 8) / (1 << 24); };
    int changed = 0;
    for (int run = 0; run < 100; ++run)
        if (tune(start, [&](tuning const&) { return 1e9 * (1 + 0.3 * noise()); }) != start) ++changed;
    EXPECT_LE(changed, 15);
}

TEST(static_graph, two_like_steps_make_it) {
    graph_recorder recorder;
    auto const a = agreed(tensor("a")), b = agreed(tensor("b")), c = agreed(tensor("c"));
    auto const note = [&](std::vector<graph_recorder::unit> const& round) { return recorder.note(round); };
    EXPECT_FALSE(note({a, b}));
    EXPECT_FALSE(note({c}));
    EXPECT_FALSE(note({agreed(tensor("x", 1, exchange_kind::allgather))}));
    EXPECT_FALSE(note({b, a, c}));  // in any order
    EXPECT_TRUE(note({c}));
    EXPECT_THAT(recorder.graph(), ElementsAre(b, a, c));
    EXPECT_THAT(recorder.begun(), ElementsAre(c));
}

TEST(static_graph, another_shape_or_another_tensor_is_another_graph) {
    graph_recorder recorder;
    auto const a = agreed(tensor("a")), b = agreed(tensor("b")), wide = agreed(tensor("b", 9));
    auto const note = [&](std::vector<graph_recorder::unit> const& round) { return recorder.note(round); };
    EXPECT_FALSE(note({a, b}));
    EXPECT_FALSE(note({a, wide}));
    EXPECT_FALSE(note({a, wide}));  // the second step was not like the first
    EXPECT_TRUE(note({a}));
    EXPECT_EQ(recorder.graph().size(), 2u);
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
