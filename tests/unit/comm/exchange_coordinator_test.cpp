// The coordinator and the request codec: the pure half of the negotiation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.hpp"
#include "comm/exchange/negotiation/coordinator.hpp"
#include "comm/exchange/request/request_codec.hpp"
#include "exchange_requests.hpp"
#include "tests/every_member.hpp"

namespace muster {

namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

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
        "allreduce of \"w\": shape [4] on rank 0 (n0), rank 1 (n1), but shape [5] on rank 2 (n2); submit it alike on all ranks");
    EXPECT_THAT(ready[0].culprits, ElementsAre(2));
}

TEST(coordinator, calls_that_never_meet_are_told_with_what_each_rank_waits_in) {
    coordinator all({"n0", "n0", "n1"});
    auto const at = [](exchange_request what, std::int64_t since_us) {
        what.since_us = since_us;
        return what;
    };
    constexpr std::int64_t day = 86'400'000'000;
    all.announce(0, at(tensor("a"), day + 1'000'000));
    all.announce(1, at(tensor("b"), 2'500'000));
    all.announce(2, at(tensor("later", 4, exchange_kind::allgather), 3'000'000));
    all.announce(2, at(tensor("a"), 86'399'999'000));
    EXPECT_TRUE(all.take_ready().empty());
    std::string const waits =
        "rank 0 (n0) waits in allreduce of \"a\" since 00:00:01.000000 UTC; rank 1 (n0) waits in allreduce of \"b\" since "
        "00:00:02.500000 UTC; rank 2 (n1) waits in allgather of \"later\" since 00:00:03.000000 UTC, allreduce of \"a\" since "
        "23:59:59.999000 UTC";
    EXPECT_EQ(all.who_waits_in_what(), waits);
    auto const told = all.never_meet(0);
    EXPECT_EQ(told.fault, "all ranks wait, and none of these calls is on all of them: " + waits +
                              "; call the same on all ranks, in the same order");
    EXPECT_THAT(told.culprits, ElementsAre(1, 2));
    EXPECT_TRUE(all.waiting().empty());
    EXPECT_EQ(all.who_waits_in_what(),
              "rank 0 (n0) has announced no call; rank 1 (n0) has announced no call; rank 2 (n1) has announced no call");
}

TEST(coordinator, what_is_the_matter_of_some_waits_for_these_alone) {
    coordinator all({"n0", "n0", "n1", "n1"});
    auto set = bare(exchange_kind::make_set, "\x01\"pair\" whose first rank is 1");
    set.numbers = {1, 3};
    all.announce(3, set);
    EXPECT_TRUE(all.take_ready().empty());
    ASSERT_EQ(all.waiting().size(), 1u);
    EXPECT_THAT(all.waiting()[0].missing, ElementsAre(1));
    all.announce(2, bare(exchange_kind::join, std::string(join_name)));  // which changes nothing for others
    EXPECT_TRUE(all.take_ready().empty());
    all.announce(1, set);
    auto const made = all.take_ready();
    ASSERT_EQ(made.size(), 1u);
    EXPECT_EQ(made[0].fault, "");
    EXPECT_THAT(made[0].what.numbers, ElementsAre(1, 3));

    auto message = tensor(
        "\x01"
        "from rank 0 to rank 1 with tag 0",
        4, exchange_kind::message);
    message.numbers = {0, 1};
    all.announce(0, message);
    auto longer = message;
    longer.tensors[0].shape = flat_shape(5);
    all.announce(1, longer);
    EXPECT_EQ(all.take_ready().at(0).fault,
              "message from rank 0 to rank 1 with tag 0: shape [4] on rank 0 (n0), but shape [5] on rank "
              "1 (n0); submit it alike on all ranks");
}

TEST(coordinator, what_is_the_matter_of_some_is_refused_only_where_one_of_them_has_left) {
    coordinator all({"n0", "n1", "n2"});
    all.announce(2, bare(exchange_kind::leave, std::string(leave_name)));
    for (int const peer : {1, 2}) {
        auto message = tensor("m" + std::to_string(peer), 4, exchange_kind::message);
        message.numbers = {0, peer};
        all.announce(0, message);
        if (peer == 1) all.announce(1, message);
        EXPECT_EQ(all.take_ready().at(0).culprits, peer == 1 ? std::vector<int>{} : std::vector<int>{2});
    }
}

TEST(coordinator, a_list_with_more_ranks_waits_for_them_and_is_a_mismatch_then) {
    coordinator all({"n0", "n0", "n1"});
    auto two = bare(exchange_kind::make_set, "s"), three = two;
    two.numbers = {0, 1};
    three.numbers = {0, 1, 2};
    all.announce(0, two);
    all.announce(1, three);
    EXPECT_TRUE(all.take_ready().empty());
    EXPECT_THAT(all.waiting().at(0).missing, ElementsAre(2));
    all.announce(2, three);
    EXPECT_THAT(all.take_ready().at(0).fault,
                HasSubstr("ranks [0, 1] on rank 0 (n0), but ranks [0, 1, 2] on rank 1 (n0), rank 2 (n1)"));
}

TEST(coordinator, a_group_of_allgathers_has_the_rows_of_each_tensor) {
    coordinator all({"n0", "n1"});
    for (int rank = 0; rank < 2; ++rank) {
        auto group = tensor("g", 3 + rank, exchange_kind::allgather);
        group.tensors.push_back(group.tensors[0]);
        group.tensors[1].shape = flat_shape(static_cast<std::size_t>(7 - rank));
        all.announce(rank, group);
    }
    auto ready = all.take_ready();
    ASSERT_EQ(ready.size(), 1u);
    EXPECT_THAT(ready[0].numbers, ElementsAre(3, 4, 7, 6));
    all.announce(1, bare(exchange_kind::join, std::string(join_name)));
    all.take_ready();
    EXPECT_THAT(all.revise(ready[0]).numbers, ElementsAre(3, 0, 7, 0));
}

TEST(coordinator, everything_that_matters_is_compared) {
    auto const fault = [](exchange_request const& a, exchange_request const& b) {
        coordinator all({"n0", "n1"});
        all.announce(0, a);
        all.announce(1, b);
        return all.take_ready().at(0).fault;
    };
    exchange_request const base = tensor("w");
    auto other = base;
    EXPECT_EQ(fault(base, other), "");
    other.kind = exchange_kind::broadcast;
    EXPECT_THAT(fault(base, other), HasSubstr("operation allreduce on rank 0 (n0), but operation broadcast on rank 1 (n1)"));
    other = base;
    other.how = reduction::max;
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

TEST(coordinator, a_join_is_refused_when_a_rank_has_left) {
    coordinator all({"n0", "n1"});
    all.announce(0, bare(exchange_kind::join, std::string(join_name)));
    EXPECT_TRUE(all.take_ready().empty());
    all.announce(1, bare(exchange_kind::leave, std::string(leave_name)));
    auto const ready = all.take_ready();
    ASSERT_EQ(ready.size(), 1u);
    EXPECT_EQ(ready[0].what.kind, exchange_kind::join);
    EXPECT_THAT(ready[0].fault, HasSubstr("rank 1"));
    EXPECT_FALSE(all.is_joined(0));
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

TEST(request_codec, what_is_sent_is_what_comes) {
    auto one = tensor("w", 12);
    one.numbers = {1, -2, 3};
    one.scale = {0.25, 4};
    one.root = 7;
    one.wire = compression::f16;
    one.error_feedback = true;
    one.places = {0x1234567890};
    one.tensors[0].shape = make_shape(std::vector<std::int64_t>{3, 4});
    std::vector const all{one, bare(exchange_kind::barrier, ""), tensor(std::string(300, 'x'), 0)};
    auto bytes = encode(all);
    EXPECT_EQ(decode_requests(bytes), all);
    bytes.resize(bytes.size() + 100);  // padding
    EXPECT_EQ(decode_requests(bytes), all);
}

TEST(request_codec, every_member_comes_back) {
    for (bool const flag : {false, true}) {
        auto made = member_filler(flag).make<exchange_request>();
        for (auto& each : made.tensors) each.shape = make_shape(std::vector<std::int64_t>{2, 3, 5});
        EXPECT_EQ(decode_requests(encode(std::span(&made, 1))), std::vector{made});
    }
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

}  // namespace

}  // namespace muster
