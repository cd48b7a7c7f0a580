#include "launch/elastic/membership.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace muster::membership {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Three members, and a clock of its own.
struct membership_test : testing::Test {
    world state;
    double now_s = 0;
    std::optional<double> look_s;  ///< when the timer for the next look fires
    std::vector<int> stopped, killed;

    void SetUp() override {
        state.now.born = state.most = 3;
        for (int rank = 0; rank < 3; ++rank) {
            state.now.members.push_back({rank, {"here", rank}});
            state.seats.push_back({.who = {"first", rank, 3, rank, 3, 0, 1, "here"}, .of = state.now.members.back()});
        }
    }
    void feed(decltype(event::what) what) {
        for (auto const& one : step(state, {now_s, std::move(what)})) {
            if (auto const* const kill = std::get_if<act::kill>(&one)) killed.push_back(kill->whom);
            if (auto const* const timer = std::get_if<act::set_timer>(&one)) look_s = now_s + timer->after_s;
            if (std::holds_alternative<act::cancel_look>(one)) look_s.reset();
            if (auto const* const look = std::get_if<act::look>(&one))
                feed(happened::look{look->what, look->at, stopped, "next"});
        }
    }
    void let_pass(double seconds) {
        double const end_s = now_s + seconds;
        while (look_s && *look_s <= end_s) {
            now_s = *look_s;
            look_s.reset();
            feed(happened::timer_fired{timer::look});
        }
        now_s = end_s;
    }
    void announce_all() {
        for (int rank = 0; rank < 3; ++rank) feed(happened::message{rank, elastic::hello{"a"}});
        for (int rank = 0; rank < 3; ++rank) feed(happened::message{rank, elastic::announce{}});
    }
    void lose(int seat) {
        feed(happened::end{seat, member_event::fails, "it was killed"});
        feed(happened::losses_known{});
        feed(happened::loss_judged{});
    }
};

TEST_F(membership_test, a_stopped_rank_that_is_left_alone_is_killed) {
    announce_all();
    lose(0);
    lose(2);
    stopped = {1};  // before it has asked, and nobody else is there to wait for it
    let_pass(look_around_every_s * 3);
    EXPECT_THAT(killed, ElementsAre(1));
}

TEST_F(membership_test, a_generation_does_not_wait_for_the_judge_of_a_loss_before_it) {
    announce_all();
    feed(happened::end{0, member_event::fails, "it was killed"});
    feed(happened::losses_known{});  // and its end is held: the judge says nothing of it
    for (int const rank : {1, 2}) feed(happened::message{rank, elastic::reform{0, true, false, 0}});
    ASSERT_EQ(state.now.number, 1);
    state.by.least = 2;
    feed(happened::end{1, member_event::ends_well, {}});
    feed(happened::message{2, elastic::reform{1, true, false, 0}});
    EXPECT_EQ(state.at, phase::gave_up) << "too few are left, and nobody judges that";
}

TEST_F(membership_test, one_that_runs_and_is_left_alone_is_not_late_as_nobody_waits) {
    announce_all();
    lose(0);
    lose(2);
    let_pass(late_after_s * 3);
    EXPECT_THAT(killed, IsEmpty());
    feed(happened::message{1, elastic::reform{0, true, false, 0}});
    EXPECT_EQ(state.now.number, 1);
    EXPECT_FALSE(look_s) << "nobody is missed any more";
}

TEST_F(membership_test, one_that_others_wait_for_and_that_is_stopped_is_killed_in_each_phase) {
    struct {
        char const* what;
        bool over_nodes, lost, asks;
    } const rows[]{{"in init() over nodes", true, false, false},
                   {"after a loss", false, true, false},
                   {"as the others ask", false, false, true}};
    for (auto const& row : rows) {
        state = {};
        killed.clear();
        look_s.reset();
        stopped = {2};
        SetUp();
        state.over_nodes = row.over_nodes;
        if (row.over_nodes)
            feed(happened::message{0, elastic::hello{"a"}});
        else
            announce_all();
        if (row.lost) lose(1);
        if (row.asks) feed(happened::message{0, elastic::reform{0, true, false, 0}});
        let_pass(look_around_every_s * 3);
        EXPECT_THAT(killed, ElementsAre(2)) << row.what;
    }
}

TEST_F(membership_test, one_that_is_stopped_for_a_moment_lives) {
    announce_all();
    lose(0);
    feed(happened::message{1, elastic::reform{0, true, false, 0}});
    stopped = {2};
    let_pass(look_every_s);
    stopped = {};
    let_pass(look_every_s);
    stopped = {2};
    let_pass(look_every_s);
    EXPECT_THAT(killed, IsEmpty());
}

TEST_F(membership_test, one_that_does_not_come_while_others_wait_is_killed_once) {
    announce_all();
    feed(happened::message{1, elastic::reform{0, true, false, 0}});
    feed(happened::message{0, elastic::reform{0, true, false, 0}});
    let_pass(late_after_s + 5);
    EXPECT_THAT(killed, ElementsAre(2));
    feed(happened::message{2, elastic::reform{0, true, false, 0}});
    EXPECT_EQ(state.now.number, 0) << "nobody begins with one that ends";
}

TEST_F(membership_test, once_it_is_closed_nothing_is_done) {
    announce_all();
    feed(happened::closing{});
    lose(0);
    for (int const rank : {1, 2}) feed(happened::message{rank, elastic::reform{0, true, false, 0}});
    let_pass(late_after_s);
    EXPECT_EQ(state.now.number, 0);
    EXPECT_THAT(killed, IsEmpty());
}

}  // namespace
}  // namespace muster::membership
