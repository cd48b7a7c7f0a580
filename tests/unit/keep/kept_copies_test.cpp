// Copies of ranks' states on other nodes: which commit is copied, where copies go before a generation, and that only whole ones count.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <string>

#include "launch/keep/copy_frames.hpp"
#include "launch/keep/copy_receiver.hpp"
#include "launch/keep/copy_sender.hpp"
#include "launch/keep/kept_store.hpp"
#include "launch/keep/machines/copy_rounds.hpp"
#include "launch/keep/machines/keeper_duties.hpp"
#include "launch/keep/machines/state_arrangement.hpp"
#include "tests/every_member.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(choose_slot, leaves_the_newest_copy_which_all_may_go_back_to_soon) {
    // The order to hold the second one is on its way.
    EXPECT_EQ(choose_slot({{{true, 31}, {false, 33}, {}, {}}}), 2u);
    EXPECT_EQ(choose_slot({{{false, 31}, {false, 33}, {}, {}}}), 0u);
    EXPECT_EQ(choose_slot({{{true, 33}, {false, 1}, {}, {}}}), 1u);
    EXPECT_EQ(choose_slot({{{true, 31}, {true, 32}, {true, 33}, {false, 34}}}), 3u);
    EXPECT_EQ(choose_slot({{{true, 31}, {true, 32}, {true, 33}, {true, 34}}}), std::nullopt);
    EXPECT_EQ(choose_slot({}), 0u);
}

// ------------------------------------------------------------------------------------------------ rounds

/// "hold 0 1:7 …": what, the node, the round and the step; of send also "->" and the node.
std::vector<std::string> orders(copy_rounds& rounds) {
    std::vector<std::string> all;
    for (auto const& one : rounds.take_orders()) {
        using kind = copy_rounds::order::kind;
        std::string const what = one.what == kind::hold ? "hold" : one.what == kind::send ? "send" : "release";
        all.push_back(what + " " + std::to_string(one.node) + " " + std::to_string(one.round) + ":" + std::to_string(one.step) +
                      (one.what == kind::send ? "->" + std::to_string(one.to) : ""));
    }
    return all;
}

/// With ranks on the first two.
copy_rounds of_three() {
    copy_rounds rounds(3);
    for (std::size_t i = 0; i < 3; ++i) rounds.on_there(i);
    rounds.go_on(0, {true, true, false});
    return rounds;
}

/// Both have committed it, and copied it.
void finish_round(copy_rounds& rounds, std::uint64_t step) {
    for (std::size_t i : {0, 1}) rounds.on_newest(i, step);
    for (std::size_t i : {0, 1}) rounds.on_held(i, rounds.round(), step, {});
    for (std::size_t i : {0, 1}) rounds.on_sent(i, rounds.round(), true);
    rounds.take_orders();
}

TEST(copy_rounds, once_all_ranks_have_a_commit_it_goes_to_the_next_nodes_and_then_older_ones_are_released) {
    auto rounds = of_three();
    rounds.on_newest(0, 5);
    EXPECT_THAT(orders(rounds), IsEmpty());
    rounds.on_newest(1, 6);
    EXPECT_THAT(orders(rounds), ElementsAre("hold 0 1:6", "hold 1 1:6"));
    rounds.on_held(1, 1, 6, {});
    EXPECT_THAT(orders(rounds), IsEmpty());
    rounds.on_held(0, 1, 6, {});
    EXPECT_THAT(orders(rounds), ElementsAre("send 0 1:6->1", "send 1 1:6->2"));
    rounds.on_sent(0, 1, true);
    rounds.on_newest(0, 7);
    EXPECT_EQ(rounds.last(), 0u);
    rounds.on_sent(1, 1, true);
    EXPECT_EQ(rounds.last(), 6u);
    EXPECT_THAT(orders(rounds), ElementsAre("release 0 1:6", "release 1 1:6", "release 2 1:6"));
    rounds.on_newest(1, 7);
    EXPECT_THAT(orders(rounds), ElementsAre("hold 0 2:7", "hold 1 2:7"));
}

TEST(copy_rounds, a_lost_node_is_left_out_of_the_ring_and_so_is_one_whose_ranks_have_gone) {
    auto rounds = of_three();
    finish_round(rounds, 5);
    rounds.on_lost(2);
    rounds.on_newest(0, 7);
    rounds.on_newest(1, 7);
    rounds.on_held(0, 2, 7, {});
    rounds.on_held(1, 2, 7, {});
    EXPECT_THAT(orders(rounds), ElementsAre("hold 0 2:7", "hold 1 2:7", "send 0 2:7->1", "send 1 2:7->0"));
    rounds.on_sent(0, 2, true);
    rounds.on_sent(1, 2, false);
    EXPECT_THAT(orders(rounds), ElementsAre("release 0 2:5", "release 1 2:5"));
    rounds.on_newest(1, 0);
    EXPECT_THAT(orders(rounds), ElementsAre("hold 0 3:7"));
    rounds.on_lost(1);
    EXPECT_THAT(orders(rounds), ElementsAre("release 0 3:5"));
    rounds.on_newest(0, 9);
    EXPECT_THAT(orders(rounds), IsEmpty());  // there is no other node
}

TEST(copy_rounds, ranks_that_ended_before_they_opened_their_memory_are_not_awaited_for_ever) {
    auto rounds = of_three();
    for (std::uint64_t const step : {3, 4}) rounds.on_newest(0, step);
    EXPECT_THAT(orders(rounds), IsEmpty());  // the others may be slower
    rounds.on_newest(0, 5);                  // ranks commit together
    EXPECT_THAT(orders(rounds), ElementsAre("hold 0 1:5"));
    rounds.on_held(0, 1, 5, {});
    EXPECT_THAT(orders(rounds), ElementsAre("send 0 1:5->1"));
    rounds.on_sent(0, 1, true);
    rounds.take_orders();
    rounds.on_newest(1, 6);  // others have come there
    rounds.on_newest(0, 6);
    EXPECT_THAT(orders(rounds), ElementsAre("hold 0 2:6", "hold 1 2:6"));
}

TEST(copy_rounds, ranks_that_commit_faster_than_orders_reach_them_are_ordered_farther_and_farther_ahead) {
    auto rounds = of_three();
    finish_round(rounds, 11);
    rounds.on_newest(1, 20);
    rounds.on_newest(0, 22);
    rounds.on_held(0, 2, 22, {});
    rounds.on_held(1, 2, 0, {});  // its ranks hold two commits
    EXPECT_THAT(orders(rounds), ElementsAre("hold 0 2:22", "hold 1 2:22", "release 0 2:11", "release 1 2:11", "release 2 2:11"));
    rounds.on_newest(1, 30);
    EXPECT_THAT(orders(rounds), ElementsAre("hold 0 3:31", "hold 1 3:31"));
    rounds.on_held(0, 3, 31, {});
    rounds.on_held(1, 3, 32, {});
    rounds.take_orders();
    rounds.on_newest(0, 40);
    EXPECT_THAT(orders(rounds), ElementsAre("hold 0 4:42", "hold 1 4:42"));
    rounds.on_late(3);
    EXPECT_THAT(orders(rounds), IsEmpty());
    rounds.on_late(4);  // they have stopped committing: what all have is taken
    EXPECT_THAT(orders(rounds), ElementsAre("release 0 4:11", "release 1 4:11", "release 2 4:11", "hold 0 5:30", "hold 1 5:30"));
}

TEST(copy_rounds, a_loss_or_a_pause_ends_a_round_and_the_last_whole_commit_stays) {
    auto rounds = of_three();
    finish_round(rounds, 5);
    for (std::size_t i : {0, 1}) rounds.on_newest(i, 6);
    for (std::size_t i : {0, 1}) rounds.on_held(i, 2, 6, {});
    rounds.take_orders();
    rounds.on_lost(2);  // who was to take one
    EXPECT_THAT(orders(rounds), ElementsAre("release 0 2:5", "release 1 2:5", "hold 0 3:6", "hold 1 3:6"));
    rounds.on_sent(0, 2, true);
    EXPECT_EQ(rounds.last(), 5u);
    rounds.pause();
    EXPECT_THAT(orders(rounds), ElementsAre("release 0 3:5", "release 1 3:5"));
    rounds.on_newest(0, 7);
    rounds.on_newest(1, 7);
    EXPECT_THAT(orders(rounds), IsEmpty());
    rounds.go_on(5, {true, true, false});
    rounds.on_newest(0, 8);
    EXPECT_THAT(orders(rounds), IsEmpty());
    rounds.on_newest(1, 8);
    EXPECT_THAT(orders(rounds), ElementsAre("hold 0 4:8", "hold 1 4:8"));
}

TEST(copy_rounds, while_another_keeper_is_on_its_way_the_last_whole_commit_stays) {
    auto rounds = of_three();
    finish_round(rounds, 5);
    rounds.on_lost(0);
    orders(rounds);
    rounds.on_newest(1, 9);
    EXPECT_THAT(orders(rounds), ElementsAre("hold 1 2:9"));
    rounds.on_held(1, 2, 9, {0, 1, 2});  // else the next node would give up what it has of the ranks on node 0
    EXPECT_THAT(orders(rounds), ElementsAre("release 1 2:5", "release 2 2:5"));
    EXPECT_EQ(rounds.last(), 5u);
    rounds.on_newest(1, 9);
    EXPECT_THAT(orders(rounds), IsEmpty()) << "it is as little whole as before";
    rounds.on_there(0, true);
    rounds.on_newest(1, 10);
    EXPECT_THAT(orders(rounds), IsEmpty());
    rounds.on_newest(0, 10);
    EXPECT_THAT(orders(rounds), ElementsAre("hold 0 3:10", "hold 1 3:10"));
    rounds.on_held(0, 3, 10, {0, 1, 2});
    rounds.on_held(1, 3, 10, {0, 1, 2});
    EXPECT_THAT(orders(rounds), ElementsAre("send 0 3:10->1", "send 1 3:10->2"));
}

TEST(copy_rounds, nothing_that_was_told_before_the_ranks_began_again_counts) {
    auto rounds = of_three();
    rounds.pause();
    rounds.on_newest(1, 7);
    rounds.go_on(5, {true, false, false});
    rounds.on_newest(0, 8);
    EXPECT_THAT(orders(rounds), ElementsAre("hold 0 1:8"));
}

TEST(copy_rounds, nobody_waits_for_ranks_that_have_ended_before_their_first_commit) {
    auto rounds = of_three();
    rounds.on_newest(0, 5);
    EXPECT_THAT(orders(rounds), IsEmpty());
    rounds.on_no_ranks(1);
    EXPECT_THAT(orders(rounds), ElementsAre("hold 0 1:5"));
    // Also while what they have begun with goes to the next nodes.
    rounds.pause();
    rounds.go_on(5, {true, true, false}, {true, true, false});
    rounds.on_no_ranks(1);
    for (std::size_t i : {0, 1}) rounds.on_sent(i, rounds.round(), true);
    orders(rounds);
    rounds.on_newest(0, 8);
    EXPECT_THAT(orders(rounds), ElementsAre("hold 0 3:8"));
}

TEST(copy_rounds, what_all_begin_with_goes_to_another_node_where_the_next_one_is_lost) {
    auto rounds = of_three();
    rounds.pause();
    rounds.go_on(5, {true, true, false}, {true, true, false});
    EXPECT_THAT(orders(rounds), ElementsAre("send 0 1:5->1", "send 1 1:5->2"));
    rounds.on_lost(2);
    EXPECT_THAT(orders(rounds), ElementsAre("release 0 1:5", "release 1 1:5", "send 0 2:5->1", "send 1 2:5->0"));
    rounds.on_sent(0, 2, true);
    rounds.on_sent(1, 2, false);
    EXPECT_THAT(orders(rounds), ElementsAre("release 0 2:5", "release 1 2:5", "send 0 3:5->1", "send 1 3:5->0"));
    rounds.on_lost(2);  // it was lost before
    rounds.on_sent(0, 3, true);
    EXPECT_EQ(rounds.on_two_nodes(), 0u);
    rounds.on_newest(0, 6);
    rounds.on_sent(1, 3, false);  // the next round has more to copy
    EXPECT_THAT(orders(rounds), ElementsAre("release 0 3:5", "release 1 3:5"));
    rounds.on_newest(1, 6);
    EXPECT_THAT(orders(rounds), ElementsAre("hold 0 4:6", "hold 1 4:6"));
}

TEST(copy_rounds, what_all_begin_with_goes_to_a_keeper_that_comes_later) {
    copy_rounds rounds(2);
    rounds.on_there(0), rounds.on_there(1);
    rounds.pause();
    rounds.on_lost(1);
    rounds.go_on(5, {true, false}, {true, false});
    EXPECT_THAT(orders(rounds), IsEmpty()) << "there is no other node";
    rounds.on_there(1);
    EXPECT_THAT(orders(rounds), ElementsAre("send 0 1:5->1"));
    rounds.on_sent(0, 1, true);
    EXPECT_EQ(rounds.on_two_nodes(), 5u);
    orders(rounds);
    rounds.on_lost(1), rounds.on_there(1);
    EXPECT_THAT(orders(rounds), IsEmpty()) << "it was on two nodes; the next commit goes there";
}

TEST(copy_rounds, what_all_begin_with_is_not_on_two_nodes_without_a_node_that_had_its_part) {
    auto rounds = of_three();
    rounds.pause();
    rounds.go_on(5, {true, true, false}, {true, true, true});  // the last one has what a rank without a successor has committed
    EXPECT_THAT(orders(rounds), ElementsAre("send 0 1:5->1", "send 1 1:5->2", "send 2 1:5->0"));
    rounds.on_lost(2);
    EXPECT_THAT(orders(rounds), ElementsAre("release 0 1:5", "release 1 1:5"));
    rounds.on_newest(0, 6), rounds.on_newest(1, 6);
    EXPECT_THAT(orders(rounds), ElementsAre("hold 0 2:6", "hold 1 2:6"));
}

TEST(copy_rounds, a_program_that_begins_again_with_smaller_numbers_is_copied_too) {
    auto rounds = of_three();
    finish_round(rounds, 50);
    rounds.on_newest(0, 2);
    rounds.on_newest(1, 1);
    EXPECT_EQ(rounds.last(), 0u);
    EXPECT_THAT(orders(rounds), ElementsAre("hold 0 2:2", "hold 1 2:2"));
}

// ------------------------------------------------------------------------------------------------ arrangement

/// "part:step", a "n" before it: of a neighbour's. By the rank of that number in this generation of so many, or by "part/rank:step".
std::vector<wire::kept_copy> copies(std::initializer_list<char const*> texts, int world_size, std::uint64_t generation = 0) {
    std::vector<wire::kept_copy> all;
    for (std::string text : texts) {
        bool const of_neighbour = text[0] == 'n';
        if (of_neighbour) text.erase(0, 1);
        auto const slash = text.find('/');
        int const part = std::stoi(text), rank = slash == std::string::npos ? part : std::stoi(text.substr(slash + 1));
        all.push_back({part, of_neighbour, std::stoull(text.substr(text.find(':') + 1)), generation, rank, world_size});
    }
    return all;
}

std::vector<wire::kept_copy> operator+(std::vector<wire::kept_copy> a, std::vector<wire::kept_copy> const& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

/// "from->to part:step".
std::vector<std::string> moves(state_arrangement const& made) {
    std::vector<std::string> all;
    for (auto const& one : made.moves)
        all.push_back(
            fmt::format("{}->{} {}{}:{}", one.from, one.to, one.what.of_neighbour ? "n" : "", one.what.part, one.what.step));
    return all;
}

TEST(arrange_states, all_ranks_get_the_newest_that_is_whole_for_all_from_the_nearest_place) {
    // Node 1 is lost; its rank 1 is on node 2 now, which has a copy, and rank 2 on node 0.
    auto const made = arrange_states(
        {copies({"0:7", "0:8", "0:5", "n2:5", "n2:4"}, 3), {}, copies({"2:8", "2:5", "n1:5", "n1:4"}, 3)}, {0, 2, 0});
    EXPECT_EQ(made.step, 5u);
    EXPECT_THAT(made.without, IsEmpty());
    EXPECT_THAT(made.parts, ElementsAre(0, 1, 2));
    EXPECT_EQ(made.free_part, 3);
    EXPECT_THAT(moves(made), ElementsAre("2->2 n1:5", "0->0 n2:5"));
}

TEST(arrange_states, what_the_latest_generation_has_committed_goes_before_what_an_earlier_one_has_whole) {
    // Rank 2 of 4 was lost in place. Its neighbour has what it had, and so have the others.
    auto const before = copies({"0:8", "1:8"}, 4), other = copies({"2:8", "3:8"}, 4);
    auto made = arrange_states({before + copies({"0:11", "1:11"}, 3, 1), other + copies({"3/2:11"}, 3, 1)}, {0, 0, 1, 1});
    EXPECT_EQ(made.step, 11u);
    EXPECT_EQ(made.world_size, 3);
    EXPECT_THAT(made.parts, ElementsAre(0, 1, 3, 4));  // the last one finds nothing, so no commit is common
    EXPECT_EQ(made.free_part, 5);
    EXPECT_THAT(moves(made), IsEmpty());
    // They had not all committed yet, with the same number as before.
    made = arrange_states({before + copies({"0:9"}, 3, 1), other}, {0, 0, 1, 1});
    EXPECT_EQ(made.step, 8u);
    EXPECT_EQ(made.generation, 0u);
    EXPECT_THAT(made.parts, ElementsAre(0, 1, 2, 3));
    made = arrange_states({before + copies({"0:8", "1:9"}, 3, 1), copies({"2:8"}, 4) + copies({"3/2:8"}, 3, 1)}, {0, 0, 1, 1});
    EXPECT_EQ(made.step, 0u);
    EXPECT_EQ(made.generation, 1u);
}

TEST(arrange_states, ranks_of_any_number_follow_those_that_made_the_commit) {
    // The first nodes are gone, in place, and spares have come in.
    auto const made = arrange_states({{}, copies({"4/0:9", "5/1:9"}, 2, 3)}, {1, 1});
    EXPECT_EQ(made.step, 9u);
    EXPECT_THAT(made.parts, ElementsAre(4, 5));
    EXPECT_THAT(moves(arrange_states({{}, copies({"4/0:9", "5/1:9"}, 2, 3)}, {0, 0, 0})), ElementsAre("1->0 4:9", "1->0 5:9"));
    EXPECT_THAT(arrange_states({copies({"0:9", "1:9", "2:9"}, 3)}, {0, 0}).parts, ElementsAre(0, 1));
}

TEST(arrange_states, the_only_copy_of_a_rank_without_a_successor_becomes_the_nodes_own_and_goes_on_to_the_next_one) {
    auto const made = arrange_states({copies({"0:9", "n2:9"}, 3), copies({"1:9", "n0:9"}, 3)}, {0, 1});
    EXPECT_THAT(moves(made), ElementsAre("0->0 n2:9"));
    EXPECT_THAT(left_out_parts(made, 0), ElementsAre(2));
    EXPECT_THAT(left_out_parts(made, 1), IsEmpty());
    auto const there = arrange_states({copies({"0:9", "n2:9"}, 3), copies({"1:9", "2:9", "n0:9"}, 3)}, {0, 1});
    EXPECT_THAT(moves(there), IsEmpty());
    EXPECT_THAT(left_out_parts(there, 1), ElementsAre(2));
}

TEST(arrange_states, where_no_commit_is_whole_for_all_each_gets_its_newest_and_what_is_gone_is_named) {
    auto const made = arrange_states({copies({"0:7", "0:8"}, 4), copies({"1:3", "2:9"}, 4)}, {1, 1, 0, 0});
    EXPECT_EQ(made.step, 0u);
    EXPECT_THAT(made.without, ElementsAre(3));
    EXPECT_THAT(made.parts, ElementsAre(0, 1, 2, 4));
    EXPECT_THAT(moves(made), ElementsAre("0->1 0:8", "1->0 2:9"));
    auto const nothing = arrange_states({{}, {}}, {0, 1});
    EXPECT_THAT(nothing.parts, ElementsAre(0, 1));
    EXPECT_EQ(nothing.free_part, 2);
}

TEST(arrange_states, what_is_not_whole_is_never_common_to_another_number_of_ranks_and_the_newest_of_it_is_there) {
    // Node 0 is lost with the first ranks.
    auto made = arrange_states({{}, copies({"2:9", "3:9"}, 6), copies({"4:9", "5:10"}, 6)}, {1, 1, 2, 2});
    EXPECT_EQ(made.step, 0u);
    EXPECT_THAT(made.without, ElementsAre(0, 1));
    EXPECT_THAT(made.parts, ElementsAre(6, 3, 4, 5));
    EXPECT_THAT(made.moves, IsEmpty());
    made = arrange_states({{}, copies({"2:9", "3:9"}, 6), copies({"4:9", "5:10"}, 6)}, {1, 1});
    EXPECT_THAT(made.parts, ElementsAre(5, 6));
    EXPECT_THAT(moves(made), ElementsAre("2->1 5:10"));
    EXPECT_THAT(arrange_states({{}, copies({"1:9"}, 2)}, {0}).parts, ElementsAre(1));
    // Nothing holds what is committed where the first ranks run. The older commit, which is whole, would not come to them.
    made = arrange_states({{}, copies({"n0:2", "n1:2", "2:2", "3:2"}, 4) + copies({"3/2:9"}, 3, 1)}, {2, 2, 1, 1});
    EXPECT_EQ(made.step, 0u);
    EXPECT_EQ(made.generation, 1u);
    EXPECT_THAT(made.parts, ElementsAre(4, 5, 3, 6));
    EXPECT_THAT(made.moves, IsEmpty());
    made = arrange_states({{}, copies({"n0:3", "2:2", "3:2"}, 4)}, {2, 2, 1, 1});
    EXPECT_THAT(moves(made), ElementsAre("1->1 n0:3"));
}

// ------------------------------------------------------------------------------------------------ copies

std::string made_up(std::size_t bytes) {
    std::mt19937 random(static_cast<unsigned>(bytes));
    std::string text(bytes, '\0');
    for (auto& each : text) each = static_cast<char>(random());
    return text;
}

kept_store::copy put(kept_store& store, int part, std::uint64_t number, std::uint64_t step, std::string const& bytes,
                     kept::origin by = {0, 1, 4}) {
    kept::line_sums sums;
    sums.add(reinterpret_cast<std::byte const*>(bytes.data()), bytes.size());
    auto const made = store.begin({part, 0, number, step, bytes.size(), sums.value(), false, by});
    store.write(made, 0, std::as_bytes(std::span(bytes)));
    EXPECT_TRUE(store.finish(made));
    return made;
}

std::string get(kept_store& store, int part, std::uint64_t step) {
    auto const one = store.find(part, step);
    if (!one) return "none";
    std::string bytes(one->bytes, '\0');
    store.read(*one, 0, std::as_writable_bytes(std::span(bytes)));
    return bytes;
}

struct stores : testing::Test {
    kept_store from, own, of_others;
    std::string const state = made_up(3 * wire::largest_piece_bytes + 640);
};

TEST_F(stores, a_copy_comes_whole_by_the_link_of_two_keepers_and_to_nobody_without_the_key) {
    put(from, 3, 8, 17, state, {2, 1, 4});
    event_loop loop;
    copy_receiver receiver(loop, 4, own, of_others);
    auto const send = [&](std::string const& key, bool for_neighbour) {
        std::string said = "nothing";
        copy_sender const sender(loop, {"127.0.0.1", receiver.port(), key}, {{&from, *from.find(3, 17), for_neighbour}},
                                 [&](std::string const& fault) {
                                     said = fault;
                                     loop.stop();
                                 });
        loop.run();
        return said;
    };
    EXPECT_EQ(send(receiver.key(), true), "");
    EXPECT_EQ(get(of_others, 3, 17), state);
    EXPECT_THAT(own.parts(), IsEmpty());
    EXPECT_EQ(send(receiver.key(), false), "");
    EXPECT_EQ(get(own, 3, 17), state);
    EXPECT_EQ(own.find(3, 17)->number, 8u);
    EXPECT_EQ(own.find(3, 17)->by, (kept::origin{2, 1, 4}));
    of_others.drop(*of_others.find(3, 17));
    EXPECT_THAT(send(std::string(64, '0'), true), testing::Not(""));
    EXPECT_EQ(get(of_others, 3, 17), "none");
}

TEST(copy_frames, every_member_comes_back_and_nothing_else_is_read) {
    for (bool const flag : {false, true}) {
        wire::copy_frame sent;
        member_filler(flag).fill(sent);
        sent.what = wire::copy_frame::kind::piece;
        auto const frame = wire::encode(sent);
        EXPECT_EQ(wire::read_copy_frame(frame), sent);
        for (std::size_t size = 0; size < frame.size(); ++size)
            EXPECT_FALSE(wire::read_copy_frame(std::string_view(frame).substr(0, size))) << size;
        EXPECT_FALSE(wire::read_copy_frame(frame + "x"));
        auto wrong = frame;
        wrong[1] = 2;  // for_neighbour
        EXPECT_FALSE(wire::read_copy_frame(wrong));
        EXPECT_FALSE(wire::read_copy_frame("\x26" + frame.substr(1)));
    }
}

TEST_F(stores, a_copy_that_is_cut_off_or_changed_is_none_and_the_one_before_it_stays) {
    using kind = wire::copy_frame::kind;
    put(of_others, 3, 1, 16, "a" + std::string(63, '\0'));
    put(of_others, 3, 2, 17, "b" + std::string(63, '\0'));
    put(from, 3, 8, 18, state);
    auto const what = *from.find(3, 18);
    auto const head = wire::encode(wire::copy_frame{kind::head, true, 3, what.number, what.step, what.bytes, what.sum});
    auto const piece = [](std::string_view bytes) { return wire::encode(wire::copy_frame{.what = kind::piece, .bytes = bytes}); };
    auto const end = wire::encode(wire::copy_frame{.what = kind::end});
    auto const answer = [](std::string const& frame) { return wire::read_copy_frame(frame)->what; };
    copy_intake intake(own, of_others);
    EXPECT_EQ(answer(intake.take(head)), kind::taken);
    EXPECT_EQ(answer(intake.take(piece(state.substr(0, 1000)))), kind::taken);
    EXPECT_EQ(get(of_others, 3, 18), "none");
    EXPECT_EQ(get(of_others, 3, 17).substr(0, 1), "b");
    EXPECT_EQ(answer(intake.take(end)), kind::refused);  // too short
    EXPECT_EQ(answer(intake.take(piece("more"))), kind::refused);
    auto changed = state;
    changed[77] ^= 1;
    intake.take(head);
    for (std::size_t at = 0; at < changed.size(); at += 100'000)
        intake.take(piece(std::string_view(changed).substr(at, 100'000)));
    EXPECT_EQ(answer(intake.take(end)), kind::refused);
    EXPECT_EQ(get(of_others, 3, 18), "none");
    intake.take(head);
    EXPECT_EQ(answer(intake.take(piece(state + "too much"))), kind::refused);
    intake.take(head);
    intake.take(piece(state));
    EXPECT_EQ(answer(intake.take(end)), kind::kept);
    EXPECT_EQ(get(of_others, 3, 18), state);
    EXPECT_EQ(get(of_others, 3, 17).substr(0, 1), "b");
    EXPECT_EQ(answer(intake.take("nothing of ours")), kind::refused);
    EXPECT_EQ(answer(intake.take(wire::encode(wire::copy_frame{kind::head, true, 1u << 30, 1, 1, 64, 1}))), kind::refused);
}

std::string short_text(char what) {
    return what + std::string(63, '\0');
}

TEST_F(stores, of_two_commits_of_the_same_step_the_one_that_was_made_later_counts) {
    put(own, 3, 1, 17, short_text('a'));
    put(own, 3, 2, 17, short_text('b'));
    EXPECT_EQ(get(own, 3, 17), short_text('b'));
    own.want(3, 16);
    EXPECT_TRUE(own.find(3, 17)->held);
    EXPECT_FALSE(own.copies(3)[0].held);
    put(own, 3, 3, 17, short_text('c'));  // in the place of the older one
    EXPECT_EQ(get(own, 3, 17), short_text('c'));
}

TEST_F(stores, what_is_not_the_commit_that_all_go_back_to_is_dropped_unless_its_rank_lives) {
    put(own, 3, 1, 6, short_text('a'));
    put(own, 3, 2, 7, short_text('b'));
    put(own, 9, 2, 7, short_text('b'));
    unique_fd const rank(::open(own.path().c_str(), O_RDWR | O_CLOEXEC));
    auto lock = kept::owner_lock(9);
    ASSERT_EQ(::fcntl(rank.get(), F_OFD_SETLK, &lock), 0);
    put(own, 4, 1, 6, short_text('c'), {1, 1, 4});  // the same number in another world
    own.keep_only(0, 6);
    EXPECT_EQ(get(own, 3, 6), short_text('a'));
    EXPECT_EQ(get(own, 3, 7), "none");
    EXPECT_EQ(get(own, 9, 7), short_text('b'));
    EXPECT_EQ(get(own, 4, 6), "none");
    own.drop_others({7});
    EXPECT_THAT(own.parts(), ElementsAre(9));
}

TEST_F(stores, on_one_node_what_a_rank_without_a_successor_has_committed_stays_until_there_is_something_newer) {
    put(own, 0, 1, 7, short_text('a'), {0, 0, 2});
    put(own, 1, 1, 7, short_text('b'), {0, 1, 2});
    EXPECT_EQ(arrange_alone(own, 1).step, 7u);
    EXPECT_THAT(own.parts(), ElementsAre(0, 1)) << "the one rank may be lost before it commits";
    EXPECT_THAT(arrange_alone(own, 2).parts, ElementsAre(0, 1));
    put(own, 0, 2, 8, short_text('c'), {2, 0, 1});
    EXPECT_EQ(arrange_alone(own, 1).step, 8u);
    EXPECT_THAT(own.parts(), ElementsAre(0));
}

TEST_F(stores, the_last_whole_commit_stays_until_another_is_whole_for_all) {
    put(of_others, 3, 1, 5, short_text('a'));
    of_others.keep_from(5);
    for (std::uint64_t step : {6, 7, 8}) {  // rounds that fail elsewhere
        put(of_others, 3, step, step, short_text('b'));
        of_others.keep_from(5);
    }
    EXPECT_EQ(get(of_others, 3, 5), short_text('a'));
    of_others.keep_from(8);
    EXPECT_THAT(of_others.copies(3), SizeIs(1));
    EXPECT_EQ(get(of_others, 3, 8), short_text('b'));
    // A program that begins again with smaller numbers: what was before is no history of these.
    put(of_others, 3, 9, 2, short_text('c'));
    of_others.keep_from(2);
    EXPECT_THAT(of_others.copies(3), SizeIs(1));
    EXPECT_EQ(get(of_others, 3, 2), short_text('c'));
}

TEST_F(stores, a_keeper_tells_once_that_its_last_rank_has_ended_also_before_its_first_commit) {
    keeper_duties duties(own, of_others);
    auto const told = [&] {
        std::string all;
        for (auto const& one : duties.look())
            if (auto const* const word = std::get_if<wire::keep_word>(&one))
                all += word->what == wire::keep_word::kind::no_ranks ? "no ranks " : fmt::format("newest {} ", word->step);
        return all;
    };
    duties.take({.what = wire::keep_order::kind::report});
    duties.take({.what = wire::keep_order::kind::settle, .parts = {9}});
    EXPECT_EQ(told(), "") << "they are to come";
    for (bool const commits : {false, true}) {
        unique_fd const rank(::open(own.path().c_str(), O_RDWR | O_CLOEXEC));
        auto lock = kept::owner_lock(9);
        ASSERT_EQ(::fcntl(rank.get(), F_OFD_SETLK, &lock), 0);
        ASSERT_EQ(::fallocate(rank.get(), 0, static_cast<off_t>(kept::place_of(9)), kept::page_bytes), 0);
        own.want(9, 0);  // the page has data, as that of a rank that has asked
        if (commits) put(own, 9, 1, 3, short_text('a'));
        EXPECT_EQ(told(), commits ? "newest 3 " : "");
        EXPECT_EQ(told(), "");
        lock.l_type = F_UNLCK;
        ASSERT_EQ(::fcntl(rank.get(), F_OFD_SETLK, &lock), 0);
        EXPECT_EQ(told(), "no ranks ");
        EXPECT_EQ(told(), "");
    }
}

TEST_F(stores, what_is_dropped_takes_no_memory) {
    put(own, 3, 1, 16, state);
    put(own, 9, 1, 16, state);
    EXPECT_THAT(own.parts(), ElementsAre(3, 9));
    own.drop_part(3);
    EXPECT_THAT(own.parts(), ElementsAre(9));
    EXPECT_EQ(get(own, 9, 16), state);
    own.drop(*own.find(9, 16));
    EXPECT_THAT(own.parts(), IsEmpty());
}

}  // namespace
}  // namespace muster
