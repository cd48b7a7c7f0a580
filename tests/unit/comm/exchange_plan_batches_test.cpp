// plan_batches: which tensors one collective reduces together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/exchange/batch/plan_batches.hpp"
#include "exchange_requests.hpp"

namespace muster {

namespace {

using namespace test;
using testing::ElementsAre;

std::vector<std::vector<std::size_t>> units(std::vector<fused_batch> const& batches) {
    std::vector<std::vector<std::size_t>> all;
    for (auto const& batch : batches) {
        all.emplace_back();
        for (auto const& item : batch.items) all.back().push_back(item.unit);
    }
    return all;
}

TEST(plan_batches, like_goes_with_like_up_to_the_threshold) {
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

TEST(plan_batches, what_is_compressed_goes_by_itself_and_is_gathered_however_long) {
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

TEST(plan_batches, device_memory_goes_by_itself_and_is_gathered_up_to_larger_stretches) {
    auto const in = [](std::string name, std::int64_t count, std::uint64_t place) {
        auto what = tensor(std::move(name), count);
        what.tensors[0].where = memory_kind::device;
        what.places = {place};
        return what;
    };
    auto adasum = in("x", 10, 0x50);
    adasum.how = reduction::adasum;
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

TEST(plan_batches, tensors_go_in_the_order_of_their_places) {
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

TEST(plan_batches, long_stretches_of_memory_are_not_copied) {
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

}  // namespace

}  // namespace muster
