// The pure half of the negotiation: who wants what, what is remembered, what travels together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.hpp"
#include "comm/exchange/autotuner.hpp"
#include "comm/exchange/coordinator.hpp"
#include "comm/exchange/fusion.hpp"
#include "comm/exchange/request_codec.hpp"
#include "comm/exchange/response_cache.hpp"
#include "comm/exchange/static_graph.hpp"

namespace muster {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

request tensor(std::string name, std::int64_t count = 4, exchange_kind kind = exchange_kind::allreduce) {
    request what;
    what.name = std::move(name);
    what.kind = kind;
    what.tensors = {{"", dtype::f32, memory_kind::host, flat_shape(static_cast<std::size_t>(count))}};
    return what;
}

request bare(exchange_kind kind, std::string name) {
    request what;
    what.kind = kind;
    what.name = std::move(name);
    return what;
}

std::vector<std::string> names(std::vector<agreement> const& all) {
    std::vector<std::string> result;
    for (auto const& each : all) result.push_back(each.what.name);
    return result;
}

TEST(coordinator, what_all_have_announced_is_ready_in_the_order_of_the_last_word) {
    coordinator all({"n0", "n0", "n1"});
    for (auto const* name : {"a", "b", "c"}) all.announce(0, tensor(name));
    for (auto const* name : {"c", "a", "b"}) all.announce(1, tensor(name));
    EXPECT_TRUE(all.take_ready().empty());
    ASSERT_EQ(all.waiting().size(), 3u);
    EXPECT_THAT(all.waiting()[0].missing, ElementsAre(2));
    for (auto const* name : {"b", "c"}) all.announce(2, tensor(name));
    EXPECT_THAT(names(all.take_ready()), ElementsAre("b", "c"));
    EXPECT_TRUE(all.take_ready().empty());
    all.announce(2, tensor("a"));
    EXPECT_THAT(names(all.take_ready()), ElementsAre("a"));
}

TEST(coordinator, a_mismatch_names_tensor_ranks_and_both_values) {
    coordinator all({"n0", "n1", "n2"});
    all.announce(0, tensor("w", 4));
    all.announce(2, tensor("w", 5));
    EXPECT_TRUE(all.take_ready().empty());  // rank 1 is to hear of it too
    all.announce(1, tensor("w", 4));
    auto const ready = all.take_ready();
    ASSERT_EQ(ready.size(), 1u);
    EXPECT_EQ(
        ready[0].fault,
        "allreduce of \"w\": shape [4] on ranks 0 (n0), 1 (n1), but shape [5] on rank 2 (n2); submit it alike on all ranks");
    EXPECT_THAT(ready[0].culprits, ElementsAre(2));
}

TEST(coordinator, everything_that_matters_is_compared) {
    auto const fault = [](request const& a, request const& b) {
        coordinator all({"n0", "n1"});
        all.announce(0, a);
        all.announce(1, b);
        return all.take_ready().at(0).fault;
    };
    request const base = tensor("w");
    auto other = base;
    EXPECT_EQ(fault(base, other), "");
    other.kind = exchange_kind::broadcast;
    EXPECT_THAT(fault(base, other), HasSubstr("operation allreduce on rank 0 (n0), but operation broadcast on rank 1 (n1)"));
    other = base;
    other.how = exchange_reduction::max;
    EXPECT_THAT(fault(base, other), HasSubstr("reduction sum on rank 0 (n0), but reduction max"));
    other = base;
    other.scale.before = 0.5;
    EXPECT_THAT(fault(base, other), HasSubstr("scaling by 1 before and 1 after on rank 0 (n0), but scaling by 0.5 before"));
    other = base;
    other.wire = compression::bf16;
    EXPECT_THAT(fault(base, other), HasSubstr("compression none on rank 0 (n0), but compression bf16 on rank 1 (n1)"));
    auto fed_back = other;
    fed_back.error_feedback = true;
    EXPECT_THAT(fault(other, fed_back), HasSubstr("compression bf16 on rank 0 (n0), but compression bf16 with error feedback"));
    other = base;
    other.root = 1;
    EXPECT_THAT(fault(base, other), HasSubstr("root 0 on rank 0 (n0), but root 1"));
    other = base;
    other.tensors[0].type = dtype::bf16;
    EXPECT_THAT(fault(base, other), HasSubstr("type f32 on rank 0 (n0), but type bf16"));
    other = base;
    other.tensors[0].where = memory_kind::device;
    EXPECT_THAT(fault(base, other), HasSubstr("host memory on rank 0 (n0), but device memory"));
    other = base;
    other.tensors.push_back(base.tensors[0]);
    EXPECT_THAT(fault(base, other), HasSubstr("1 tensors on rank 0 (n0), but 2 tensors"));
}

TEST(coordinator, rows_of_allgather_may_differ_and_are_gathered) {
    coordinator all({"n0", "n1"});
    all.announce(0, tensor("g", 4, exchange_kind::allgather));
    all.announce(1, tensor("g", 7, exchange_kind::allgather));
    auto const ready = all.take_ready();
    EXPECT_EQ(ready.at(0).fault, "");
    EXPECT_THAT(ready[0].numbers, ElementsAre(4, 7));
}

TEST(coordinator, joined_ranks_count_as_ready_and_the_last_one_is_told) {
    coordinator all({"n0", "n1"});
    all.announce(1, bare(exchange_kind::join, std::string(join_name)));
    EXPECT_TRUE(all.take_ready().empty());
    all.announce(0, tensor("g", 4, exchange_kind::allgather));
    auto ready = all.take_ready();
    ASSERT_EQ(ready.size(), 1u);
    EXPECT_THAT(ready[0].numbers, ElementsAre(4, 0));
    EXPECT_FALSE(ready[0].whole);
    auto root = tensor("b", 4, exchange_kind::broadcast);
    root.root = 1;
    all.announce(0, root);
    EXPECT_THAT(all.take_ready().at(0).fault, HasSubstr("its root, rank 1 (n1), has joined"));
    all.announce(0, bare(exchange_kind::join, std::string(join_name)));
    ready = all.take_ready();
    ASSERT_EQ(ready.size(), 1u);
    EXPECT_EQ(ready[0].what.kind, exchange_kind::join);
    EXPECT_EQ(ready[0].last, 0);
    EXPECT_FALSE(all.anyone_joined());
}

TEST(coordinator, what_was_cached_is_seen_in_the_light_of_who_has_joined) {
    coordinator all({"n0", "n1"});
    for (int rank = 0; rank < 2; ++rank) all.announce(rank, tensor("g", 4, exchange_kind::allgather));
    agreement const cached = all.take_ready().at(0);
    EXPECT_THAT(cached.numbers, ElementsAre(4, 4));
    all.announce(1, bare(exchange_kind::join, std::string(join_name)));
    EXPECT_TRUE(all.take_ready().empty());
    EXPECT_THAT(all.revise(cached).numbers, ElementsAre(4, 0));
}

TEST(coordinator, what_needs_a_rank_that_has_left_is_refused) {
    coordinator all({"n0", "n1"});
    all.announce(0, tensor("w"));
    EXPECT_TRUE(all.take_ready().empty());
    all.announce(1, bare(exchange_kind::leave, std::string(leave_name)));
    EXPECT_THAT(all.take_ready().at(0).fault, HasSubstr("allreduce of \"w\": rank 1 (n1) has ended the exchange"));
    all.announce(0, tensor("x"));
    EXPECT_THAT(all.take_ready().at(0).culprits, ElementsAre(1));
    EXPECT_FALSE(all.all_left());
    all.announce(0, bare(exchange_kind::leave, std::string(leave_name)));
    EXPECT_TRUE(all.take_ready().empty());
    EXPECT_TRUE(all.all_left());
}

std::shared_ptr<agreement const> agreed(request what) {
    auto one = std::make_shared<agreement>();
    one->what = std::move(what);
    return one;
}

std::shared_ptr<request const> shared(request what) {
    return std::make_shared<request const>(std::move(what));
}

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

std::vector<std::vector<std::size_t>> units(std::vector<fused_batch> const& batches) {
    std::vector<std::vector<std::size_t>> all;
    for (auto const& batch : batches) {
        all.emplace_back();
        for (auto const& item : batch.items) all.back().push_back(item.unit);
    }
    return all;
}

TEST(fusion, like_goes_with_like_up_to_the_threshold) {
    auto half = tensor("h");
    half.tensors[0].type = dtype::f16;
    auto scaled = tensor("s");
    scaled.scale.after = 2;
    std::vector const ready{agreed(tensor("a", 100)), agreed(half),
                            agreed(tensor("b", 100)), agreed(tensor("g", 9, exchange_kind::allgather)),
                            agreed(scaled),           agreed(tensor("c", 300)),
                            agreed(tensor("d", 1))};
    EXPECT_THAT(units(plan_batches(ready, 800)),
                ElementsAre(ElementsAre(0, 2), ElementsAre(5), ElementsAre(6), ElementsAre(1), ElementsAre(3), ElementsAre(4)));
    EXPECT_THAT(units(plan_batches(ready, 1 << 20)),
                ElementsAre(ElementsAre(0, 2, 5, 6), ElementsAre(1), ElementsAre(3), ElementsAre(4)));
    EXPECT_EQ(plan_batches(ready, 1 << 20)[0].bytes, 501 * 4u);
}

TEST(fusion, what_is_compressed_goes_by_itself_and_is_gathered_however_long) {
    auto const in = [](std::string name, compression wire, std::uint64_t place, bool error_feedback = false) {
        auto what = tensor(std::move(name), 65'536);
        what.wire = wire;
        what.error_feedback = error_feedback;
        what.places = {place};
        return agreed(what);
    };
    auto integer = tensor("i");
    integer.tensors[0].type = dtype::i32;
    integer.wire = compression::bf16;  // of a group: only its f32 tensors are compressed
    std::vector const ready{in("a", compression::bf16, 0x100000),       in("b", compression::none, 0x200000),
                            in("c", compression::f16, 0x300000),        in("d", compression::bf16, 0x900000),
                            in("e", compression::bf16, 0xa00000, true), agreed(integer)};
    auto const batches = plan_batches(ready, 16 << 20);
    EXPECT_THAT(units(batches), ElementsAre(ElementsAre(0, 3), ElementsAre(1), ElementsAre(2), ElementsAre(4), ElementsAre(5)));
    EXPECT_EQ(batches[0].wire, compression::bf16);
    EXPECT_TRUE(batches[3].error_feedback);
    EXPECT_EQ(batches[4].wire, compression::none);
}

TEST(fusion, device_memory_goes_by_itself_and_is_gathered_up_to_larger_stretches) {
    auto const in = [](std::string name, std::int64_t count, std::uint64_t place) {
        auto what = tensor(std::move(name), count);
        what.tensors[0].where = memory_kind::device;
        what.places = {place};
        return what;
    };
    auto adasum = in("x", 10, 0x50);
    adasum.how = exchange_reduction::adasum;
    auto compressed = in("c", 10, 0x60);
    compressed.wire = compression::bf16;
    compressed.error_feedback = true;
    std::vector const ready{agreed(tensor("host")),
                            agreed(in("a", 100'000, 0x100000)),
                            agreed(in("b", 10, 0x10)),
                            agreed(in("d", 1 << 20, 0x900000)),
                            agreed(adasum),
                            agreed(compressed)};
    auto const batches = plan_batches(ready, 16 << 20);
    EXPECT_THAT(units(batches), ElementsAre(ElementsAre(0), ElementsAre(3), ElementsAre(2, 1), ElementsAre(4), ElementsAre(5)));
    EXPECT_EQ(batches[0].where, memory_kind::host);
    for (std::size_t i = 1; i < batches.size(); ++i) EXPECT_EQ(batches[i].where, memory_kind::device);
    EXPECT_EQ(batches[4].wire, compression::bf16);
    EXPECT_TRUE(batches[4].error_feedback);
}

TEST(fusion, tensors_go_in_the_order_of_their_places) {
    auto const at = [](std::string name, std::uint64_t place) {
        auto what = tensor(std::move(name));
        what.places = {place};
        return agreed(what);
    };
    std::vector const ready{at("last", 300), at("first", 100), at("middle", 200)};
    EXPECT_THAT(units(plan_batches(ready, 1 << 20)), ElementsAre(ElementsAre(1, 2, 0)));
    std::vector const backwards{at("c", 300), at("b", 200), at("a", 100)};
    EXPECT_THAT(units(plan_batches(backwards, 1 << 20)), ElementsAre(ElementsAre(2, 1, 0)));
    std::vector const same{at("a", 100), at("b", 100)};  // one place twice: they stay as they are
    EXPECT_THAT(units(plan_batches(same, 1 << 20)), ElementsAre(ElementsAre(0, 1)));
}

TEST(fusion, long_stretches_of_memory_are_not_copied) {
    auto const at = [](std::string name, std::int64_t count, std::uint64_t place) {
        auto what = tensor(std::move(name), count);
        what.places = {place};
        return agreed(what);
    };
    constexpr std::uint64_t half = 40'000 * 4;
    std::vector const ready{at("large", 65'536, 0x100000), at("small", 100, 0x900000), at("other", 100, 0x901000),
                            at("left", 40'000, 0xa00000), at("right", 40'000, 0xa00000 + half)};
    EXPECT_THAT(units(plan_batches(ready, 16 << 20)), ElementsAre(ElementsAre(0), ElementsAre(3, 4), ElementsAre(1, 2)));
    std::vector const apart{ready[3], at("not right", 40'000, 0xa00000 + half + 4)};
    EXPECT_THAT(units(plan_batches(apart, 16 << 20)), ElementsAre(ElementsAre(0, 1)));
}

TEST(request_codec, what_is_sent_is_what_comes) {
    auto one = tensor("w", 12);
    one.numbers = {1, -2, 3};
    one.scale = {0.25, 4};
    one.root = 7;
    one.wire = compression::f16;
    one.error_feedback = true;
    one.places = {0x1234567890};
    one.tensors[0].shape = make_shape(std::vector<std::int64_t>{3, 4});
    std::vector const all{one, bare(exchange_kind::tune, ""), tensor(std::string(300, 'x'), 0)};
    auto bytes = encode(all);
    EXPECT_EQ(decode_requests(bytes), all);
    bytes.resize(bytes.size() + 100);  // padding
    EXPECT_EQ(decode_requests(bytes), all);
}

TEST(request_codec, what_is_cut_or_wrong_is_refused) {
    auto const bytes = encode(std::vector{tensor("weight")});
    for (std::size_t size = 0; size < bytes.size(); ++size)
        EXPECT_THROW(decode_requests(std::span(bytes).first(size)), error) << size;
    auto wrong = bytes;
    wrong[4 + 4 + 6] = std::byte{99};  // number, size of the name, the name, then the kind
    EXPECT_THROW(decode_requests(wrong), error);
    std::uint32_t const many = 0xffffffff;
    std::memcpy(wrong.data(), &many, sizeof many);
    EXPECT_THROW(decode_requests(wrong), error);
}

TEST(coordinator, what_rank_0_tunes_needs_nobodys_consent) {
    coordinator all({"n0", "n1"});
    auto settings = bare(exchange_kind::tune, "tune");
    settings.numbers = {1, 2};
    all.announce(0, settings);
    EXPECT_THAT(all.take_ready().at(0).what.numbers, ElementsAre(1, 2));
}

TEST(coordinator, who_gives_up_needs_nobodys_consent) {
    coordinator all({"n0", "n1"});
    all.announce(0, tensor("w"));
    auto words = tensor("give up", 0, exchange_kind::give_up);
    words.tensors[0].name = "w: not finished";
    words.numbers = {0};
    all.announce(1, words);
    auto const ready = all.take_ready();
    ASSERT_EQ(ready.size(), 1u);
    EXPECT_EQ(ready[0].what.kind, exchange_kind::give_up);
    EXPECT_EQ(ready[0].what.tensors[0].name, "w: not finished");
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
