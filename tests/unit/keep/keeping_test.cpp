// The machine that leads the keepers: what a keeper that comes is told, which rounds count, and for whom a restart waits.
#include "launch/keep/machines/keeping.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "launch/remote/host_ranks.hpp"

namespace muster::keeping {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using word_kind = wire::keep_word::kind;
using order_kind = wire::keep_order::kind;

/// Three nodes with a rank on each of the first two; deeds as "hold 0 7", "start 1", "answer 7".
struct keeping_test : testing::Test {
    world state{{"a", "b", "c"}, 13, true};
    double now_s = 1;
    std::vector<std::string> deeds;
    bool settle_later = false;
    std::uint64_t question[3] = {};
    std::uint64_t arrivals = 0;  ///< the number of the last of these timers
    wire::states_placed placed;

    /// Keepers that are told to settle do so at once, unless `settle_later`.
    void feed(decltype(event::what) what) {
        std::vector<std::pair<std::size_t, std::uint64_t>> settling;
        for (auto const& one : step(state, {now_s, std::move(what)})) {
            if (auto const* const order = std::get_if<act::order>(&one)) {
                constexpr std::array names{"report", "hold", "send", "release", "list", "move", "settle", "adopt"};
                deeds.push_back(
                    fmt::format("{} {} {}", names[static_cast<std::size_t>(order->what.what)], order->to, order->what.step));
                question[order->to] = order->what.round;
                if (order->what.what == order_kind::settle && !settle_later) settling.emplace_back(order->to, order->what.round);
            } else if (auto const* const start = std::get_if<act::start>(&one)) {
                for (auto const& each : start->whom) deeds.push_back(fmt::format("start {}", each.node));
            } else if (auto const* const set = std::get_if<act::set_timer>(&one)) {
                if (set->which == timer::arrivals) arrivals = set->number;
            } else if (auto const* const answer = std::get_if<act::answer>(&one); answer != nullptr && !answer->what.under_way) {
                placed = answer->what;
                deeds.push_back(fmt::format("answer {}", placed.step));
            }
        }
        for (auto const& [which, round] : settling) feed(happened::word{which, {.what = word_kind::moved, .round = round}});
    }
    void come(std::size_t which, std::uint64_t memory) {
        feed(happened::word{which, {.what = word_kind::there, .address = state.nodes[which].name, .file_id = memory}});
    }
    void ask(std::vector<std::string> const& hosts) {
        std::vector<std::vector<int>> ranks;
        for (std::size_t i = 0; i < hosts.size(); ++i) ranks.push_back({static_cast<int>(i)});
        feed(happened::request{{.hosts = hosts, .ranks = pack_ranks(ranks), .world_size = static_cast<int>(hosts.size())}});
    }
    void list(std::size_t which, std::vector<wire::kept_copy> copies) {
        feed(happened::word{which, {.what = word_kind::listed, .round = question[which], .copies = std::move(copies)}});
    }
    static wire::kept_copy copy(int rank, std::uint64_t step, int world_size = 2) {
        return {rank, false, step, 0, rank, world_size};
    }
    /// The ranks of the first generation run.
    void begin() {
        feed(happened::beginning{});
        for (std::size_t i = 0; i < 3; ++i) come(i, 10 + i);
        ask({"a", "b"});
        for (std::size_t i = 0; i < 3; ++i) list(i, {});
        deeds.clear();
    }
    void newest(std::size_t which, std::uint64_t step) { feed(happened::word{which, {.what = word_kind::newest, .step = step}}); }
    void held(std::size_t which, std::uint64_t step, std::vector<wire::kept_copy> copies) {
        feed(happened::word{which,
                            {.what = word_kind::held, .round = state.rounds.round(), .step = step, .copies = std::move(copies)}});
    }
    void sent(std::size_t which) { feed(happened::word{which, {.what = word_kind::sent, .round = state.rounds.round()}}); }
};

TEST_F(keeping_test, a_round_in_which_a_rank_has_ended_does_not_count) {
    begin();
    newest(0, 7), newest(1, 7);
    held(0, 7, {copy(0, 7, 3)}), held(1, 7, {copy(1, 7, 3)});  // of three ranks
    EXPECT_THAT(deeds, Not(Contains(StartsWith("send")))) << "the others would drop what they can go back to";
    newest(0, 7), newest(1, 7);
    deeds.clear();
    newest(0, 8), newest(1, 8);
    held(0, 8, {copy(0, 8)}), held(1, 8, {copy(1, 8)});
    EXPECT_THAT(deeds, ElementsAre("hold 0 8", "hold 1 8", "send 0 8", "send 1 8"));
}

TEST_F(keeping_test, a_keeper_that_takes_over_releases_what_the_one_before_it_held) {
    begin();
    newest(0, 7), newest(1, 7);
    held(0, 7, {copy(0, 7)}), held(1, 7, {copy(1, 7)});
    sent(0), sent(1);
    feed(happened::loss{0, "killed"});
    feed(happened::timer_fired{timer::another_start});
    deeds.clear();
    come(0, 20);
    feed(happened::word{0, {.what = word_kind::adopted, .step = 1, .file_id = 10}});
    EXPECT_THAT(deeds, ElementsAre("adopt 0 0", "report 0 0", "release 0 7"));
}

TEST_F(keeping_test, ranks_begin_when_each_keeper_has_dropped_what_is_of_another_history) {
    begin();
    ask({"a", "b"});
    list(0, {copy(0, 7)}), list(1, {copy(1, 7)});
    deeds.clear();
    settle_later = true;
    list(2, {});
    EXPECT_THAT(deeds, ElementsAre("settle 0 7", "settle 1 7", "settle 2 7"));
    feed(happened::word{0, {.what = word_kind::moved, .round = question[0]}});
    feed(happened::loss{1, "killed"});
    EXPECT_THAT(deeds, Not(Contains(StartsWith("answer"))));
    feed(happened::word{2, {.what = word_kind::moved, .round = question[2]}});
    EXPECT_THAT(deeds, Not(Contains(StartsWith("answer")))) << "another keeper is on its way";
    feed(happened::timer_fired{timer::another_start});
    settle_later = false;
    feed(happened::no_start{1, state.nodes[1].starts, "it could not be started"});
    list(0, {copy(0, 7)}), list(2, {});
    EXPECT_THAT(deeds, Contains(StartsWith("answer")));
}

TEST_F(keeping_test, ranks_do_not_wait_for_another_keeper_on_a_node_without_ranks_and_it_is_not_given_up) {
    begin();
    feed(happened::loss{2, "killed"});
    feed(happened::timer_fired{timer::another_start});
    ask({"a", "b"});
    EXPECT_EQ(state.nodes[2].now, node::state::awaited);
    settle_later = true;
    list(0, {copy(0, 7)}), list(1, {copy(1, 7)});
    EXPECT_THAT(deeds, Contains("settle 0 7"));
    deeds.clear();
    come(2, 20);
    feed(happened::word{2, {.what = word_kind::adopted, .file_id = 20}});
    EXPECT_THAT(deeds, Contains("list 2 0")) << "what it has may be of another history";
    EXPECT_THAT(deeds, Not(Contains(StartsWith("answer"))));
    settle_later = false;
    list(0, {copy(0, 7)}), list(1, {copy(1, 7)});
    list(2, {});
    EXPECT_THAT(deeds, Contains("answer 7"));
}

TEST_F(keeping_test, what_all_begin_with_goes_to_the_next_nodes_at_once) {
    begin();
    ask({"a", "b"});
    list(0, {copy(0, 7)}), list(1, {copy(1, 7)});
    deeds.clear();
    list(2, {});
    EXPECT_THAT(deeds, ElementsAre("settle 0 7", "settle 1 7", "settle 2 7", "send 0 7", "send 1 7", "answer 7"));
    EXPECT_EQ(state.rounds.on_two_nodes(), 0u);
    sent(0), sent(1);
    EXPECT_EQ(state.rounds.on_two_nodes(), 7u);
    deeds.clear();
    newest(0, 8);
    EXPECT_THAT(deeds, IsEmpty()) << "the other ranks have not committed";
    newest(1, 8);
    EXPECT_THAT(deeds, ElementsAre("hold 0 8", "hold 1 8"));
}

TEST_F(keeping_test, a_restart_waits_for_the_keeper_of_each_node_with_ranks_also_where_nobody_has_waited_for_it_before) {
    begin();
    feed(happened::loss{2, "killed"});
    ask({"a", "b"});
    list(0, {copy(0, 7)}), list(1, {copy(1, 7)});
    feed(happened::no_start{2, 2, "no keeper came"});
    feed(happened::loss{0, "its node is lost"});
    deeds.clear();
    ask({"b", "c"});
    EXPECT_THAT(deeds, Contains("start 2"));
    EXPECT_THAT(deeds, Not(Contains("list 1 0"))) << "nobody knows yet what c can hold";
}

TEST_F(keeping_test, what_started_the_former_keeper_may_end_while_another_is_on_its_way) {
    begin();
    feed(happened::loss{0, "killed"});
    feed(happened::timer_fired{timer::another_start});
    EXPECT_THAT(deeds, Contains("start 0"));
    feed(happened::no_start{0, 1, "no keeper came"});
    EXPECT_EQ(state.nodes[0].now, node::state::awaited);
    feed(happened::no_start{0, 2, "no keeper came"});
    EXPECT_EQ(state.nodes[0].now, node::state::lost);
}

TEST_F(keeping_test, patience_with_keepers_ends_only_with_the_request_that_waits_for_them) {
    begin();
    feed(happened::loss{0, "killed"});
    feed(happened::timer_fired{timer::another_start});
    feed(happened::timer_fired{timer::arrivals, 0, 1});
    EXPECT_EQ(state.nodes[0].now, node::state::awaited) << "no request waits for it";
    ask({"a", "b"});
    feed(happened::timer_fired{timer::arrivals, 0, 1});
    EXPECT_EQ(state.nodes[0].now, node::state::awaited) << "another request waits for it";
    EXPECT_EQ(arrivals, 2u);
    feed(happened::timer_fired{timer::arrivals, 0, arrivals});
    EXPECT_EQ(state.nodes[0].now, node::state::lost);
}

TEST_F(keeping_test, a_fault_of_a_move_that_is_not_asked_for_any_more_counts_for_nothing) {
    begin();
    auto const ask_for_moves = [&] {
        ask({"b", "c"});
        list(0, {copy(0, 7)}), list(1, {copy(1, 7)});
        list(2, {});
    };
    auto const moved = [&](std::size_t which, std::uint64_t number, std::string const& fault) {
        feed(happened::word{which, {.what = word_kind::moved, .round = number, .fault = fault}});
    };
    ask_for_moves();
    auto const former = question[0];
    ask_for_moves();
    moved(0, former, "the copy is gone");
    deeds.clear();
    moved(0, question[0], ""), moved(1, question[1], "");
    EXPECT_THAT(deeds, Not(Contains(StartsWith("list")))) << "nothing has failed";
    EXPECT_EQ(placed.step, 7u);
}

TEST_F(keeping_test, the_launcher_hears_that_states_are_being_arranged) {
    begin();
    auto const says_so = [&] {
        return std::ranges::any_of(step(state, {now_s += 1, happened::timer_fired{timer::silence}}), [](auto const& one) {
            auto const* const answer = std::get_if<act::answer>(&one);
            return answer != nullptr && answer->what.under_way;
        });
    };
    EXPECT_FALSE(says_so()) << "nothing is asked for";
    ask({"a", "b"});
    EXPECT_TRUE(says_so());
    for (std::size_t i = 0; i < 3; ++i) list(i, {});
    EXPECT_FALSE(says_so()) << "they are arranged";
}

TEST_F(keeping_test, ranks_begin_without_a_copy_that_no_rank_continues) {
    begin();
    ask({"a", "b"});
    auto const of_neighbour = [](wire::kept_copy one) {
        one.of_neighbour = true;
        return one;
    };
    list(0, {copy(0, 7, 3)}), list(1, {copy(1, 7, 3), of_neighbour(copy(2, 7, 3))});
    list(2, {});
    EXPECT_THAT(deeds, Contains("move 1 7")) << "the only copy of rank 2 becomes the node's own";
    deeds.clear();
    feed(happened::word{1, {.what = word_kind::moved, .round = question[1], .fault = "no memory"}});
    EXPECT_THAT(deeds, Not(Contains(StartsWith("list")))) << "nobody needs it";
    EXPECT_EQ(placed.step, 7u);
}

TEST_F(keeping_test, what_a_rank_without_a_successor_has_committed_stays) {
    begin();
    ask({"a"});
    list(0, {copy(0, 7)}), list(1, {copy(1, 7)});
    list(2, {});
    EXPECT_EQ(placed.step, 7u);
    ASSERT_THAT(state.under_way.made.left_out, testing::SizeIs(1));
    EXPECT_EQ(state.under_way.made.left_out.front().from, 1u);
}

}  // namespace
}  // namespace muster::keeping
