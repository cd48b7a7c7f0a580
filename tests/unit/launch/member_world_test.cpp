#include "launch/run/members/member_world.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Three members without processes; the test hears what they are sent.
struct member_world_test : testing::Test {
    static constexpr int size = 3;
    environment variables;
    scheduler_sources sources{variables, {}, {}, {}};
    run_outcome outcome;
    run_context context{{run_options{}, variables, sources, ""}, outcome};
    run_options& options = context.options;
    event_loop loop;
    std::optional<member_world> world;
    std::vector<std::deque<std::string>> sent;
    std::vector<std::string> done;
    std::vector<int> seats;
    std::vector<slot> started;
    int stopped = -1;

    void SetUp() override {
        options.least_ranks = 2;
        context.life.now.born = size;
        std::vector<member_world::place> who;
        for (int rank = 0; rank < size; ++rank) {
            context.life.now.members.push_back({rank, {"here", rank}});
            who.push_back({{"first", rank, size, rank, size, 0, 1, "here", identity::source::muster}});
        }
        begin(who);
    }
    void begin(std::vector<member_world::place> const& who) {
        sent.assign(who.size(), {});
        world.emplace(
            loop, context, who,
            member_world::group{
                .send = [this](int seat, std::string const& packet) { sent[static_cast<std::size_t>(seat)].push_back(packet); },
                .look =
                    [this](std::vector<int> const& at, auto const& then) {
                        bool const is_looked_at = std::find(at.begin(), at.end(), stopped) != at.end();
                        then(is_looked_at ? std::vector<int>{stopped} : std::vector<int>());
                    },
                .kill = [this](int seat) { done.push_back("kill " + std::to_string(seat)); },
                .say = [this](std::string const& line) { done.push_back(line); },
                .begin =
                    [this](generation const& now, std::vector<int> const& by_rank, std::string const&) {
                        done.push_back("begin " + std::to_string(now.number));
                        seats = by_rank;
                    },
                .start_at = [this](slot const& at) { started.push_back(at); },
                .look_at_hosts = [] {},
                .waits = [this](int seat) { done.push_back("waits " + std::to_string(seat)); },
                .give_up = [this](std::string const& why) { done.push_back("give up: " + why); }});
    }
    /// Waits from now on; its seat is the next one.
    void add_spare(int seat) {
        world->add_spare({{"first", seat, size, seat, size, 0, 1, "here", identity::source::muster}}, {"here", seat});
        sent.emplace_back();
        say(seat, elastic::hello{});
    }
    void say(int rank, elastic::message const& what) { world->take(rank, elastic::encode(what)); }
    std::optional<elastic::message> hear(int rank) {
        auto& its = sent[static_cast<std::size_t>(rank)];
        if (its.empty()) return std::nullopt;
        auto const packet = std::move(its.front());
        its.pop_front();
        return elastic::decode(packet);
    }
    elastic::generation hear_generation(int rank) { return std::get<elastic::generation>(hear(rank).value()); }
    /// Each has asked who it is, and has heard it.
    void announce_all() {
        for (int rank = 0; rank < size; ++rank) announce(rank);
    }
    void announce(int rank) {
        say(rank, elastic::hello{});
        sent[static_cast<std::size_t>(rank)].clear();
        say(rank, elastic::announce{});
    }
    void lose(int seat) {
        world->note_end(seat, false, "it was killed");
        world->tell_lost();
        world->go_on();
        loop.after(duration(0), [this] { loop.stop(); });
        loop.run();
    }
};

TEST_F(member_world_test, those_that_are_left_go_on_when_all_of_them_want_it) {
    announce_all();
    say(1, elastic::hello{});
    EXPECT_EQ(hear_generation(1).who.nspace, "first");
    announce_all();
    lose(0);
    for (int const rank : {1, 2}) EXPECT_EQ(hear(rank), (elastic::message{elastic::lost{0, {0}, "it was killed"}}));
    say(2, elastic::reform{0, true, false});
    EXPECT_THAT(done, IsEmpty()) << "rank 1 has not come";
    EXPECT_EQ(hear(1), (elastic::message{elastic::lost{0, {}, "rank 2 on here left its world after a failure"}}));
    say(1, elastic::reform{0, true, false});
    EXPECT_THAT(done, ElementsAre("begin 1"));
    EXPECT_THAT(seats, ElementsAre(1, 2));
    auto const first = hear_generation(1), second = hear_generation(2);
    EXPECT_EQ(first.number, 1);
    EXPECT_THAT(first.members, ElementsAre(1, 2));
    EXPECT_EQ(first.who.rank, 0);
    EXPECT_EQ(second.who.rank, 1);
    EXPECT_EQ(second.who.world_size, 2);
    EXPECT_TRUE(first.sync);
    EXPECT_NE(first.who.nspace, "first") << "nothing of the former world may be met";
    EXPECT_EQ(first.who.nspace, second.who.nspace);
    say(1, elastic::reform{0, true, false});
    EXPECT_EQ(hear_generation(1), first) << "one that asks late gets what has begun";
}

TEST_F(member_world_test, the_first_with_the_state_becomes_rank_0) {
    announce_all();
    lose(0);
    say(1, elastic::reform{0, false, false});
    say(2, elastic::reform{0, true, false});
    EXPECT_THAT(seats, ElementsAre(2, 1));
}

TEST_F(member_world_test, one_that_is_stopped_after_it_has_asked_is_killed_and_not_taken_in) {
    options.least_ranks = 1;
    announce_all();
    lose(0);
    say(1, elastic::reform{0, true, false});
    stopped = 1;
    say(2, elastic::reform{0, true, false});
    EXPECT_THAT(done, IsEmpty()) << "rank 1 would keep rank 2 waiting";
    loop.after(duration(1.2), [this] { loop.stop(); });  // two looks
    loop.run();
    EXPECT_THAT(done, ElementsAre(HasSubstr("rank 1 on here (member 1) is stopped"), "kill 1"));
    stopped = -1;
    lose(1);
    EXPECT_THAT(done.back(), "begin 1");
    EXPECT_THAT(seats, ElementsAre(2));
}

TEST_F(member_world_test, one_that_goes_on_after_it_was_stopped_for_a_moment_is_taken_in) {
    announce_all();
    lose(0);
    say(1, elastic::reform{0, true, false});
    stopped = 1;
    say(2, elastic::reform{0, true, false});
    stopped = -1;
    loop.after(duration(0.7), [this] { loop.stop(); });  // one look
    loop.run();
    EXPECT_THAT(done, ElementsAre("begin 1"));
    EXPECT_THAT(seats, ElementsAre(1, 2));
}

TEST_F(member_world_test, a_loss_while_they_wait_makes_the_world_smaller) {
    options.least_ranks = 1;
    announce_all();
    lose(0);
    say(1, elastic::reform{0, true, false});
    lose(2);
    EXPECT_THAT(done, ElementsAre("begin 1"));
    EXPECT_THAT(seats, ElementsAre(1));
}

TEST_F(member_world_test, without_a_loss_all_go_on_and_the_state_is_spread_unless_all_are_at_a_commit) {
    announce_all();
    for (int rank = 0; rank < size; ++rank) say(rank, elastic::reform{0, true, true});
    EXPECT_FALSE(hear_generation(0).sync);
    for (int rank = 0; rank < size; ++rank) say(rank, elastic::reform{1, true, rank != 1});
    EXPECT_THAT(done, ElementsAre("begin 1", "begin 2"));
    EXPECT_TRUE(hear_generation(0).sync);
}

TEST_F(member_world_test, programs_that_have_not_said_that_they_can_do_not_go_on) {
    std::string why_not;
    lose(2);
    EXPECT_FALSE(world->can_go_on(why_not));
    EXPECT_THAT(why_not, HasSubstr("no rank had begun elastic.run"));
    EXPECT_FALSE(hear(0)) << "they end, and need not hear of it";
    say(0, elastic::announce{});
    EXPECT_FALSE(world->can_go_on(why_not)) << "nobody can say so who has not asked who it is";
    announce(0);
    EXPECT_TRUE(world->can_go_on(why_not));
    lose(1);
    EXPECT_FALSE(world->can_go_on(why_not));
    EXPECT_EQ(why_not, "the others cannot go on in place: 1 rank left, 2 needed (--min-np)");
    options.least_ranks.reset();
    options.restarts.most = 1;
    EXPECT_FALSE(world->can_go_on(why_not));
    EXPECT_EQ(why_not, "what the ranks have committed is lost (--keep-state node holds it)")
        << "without --min-np nobody wanted to go on in place";
    options.discovery.command = "./hosts.sh";
    EXPECT_FALSE(world->can_go_on(why_not));
    EXPECT_THAT(why_not, HasSubstr("1 rank left, 3 needed (--min-np); what the ranks have committed is lost"));
    options.keep_state = true;
    EXPECT_FALSE(world->can_go_on(why_not));
    EXPECT_THAT(why_not, Not(HasSubstr("lost")));
}

TEST_F(member_world_test, ranks_that_depart_are_left_out_and_too_few_give_up) {
    announce_all();
    world->note_end(0, true, "");
    EXPECT_FALSE(hear(1)) << "the others may be about to end, too";
    say(1, elastic::reform{0, true, false});
    say(2, elastic::reform{0, true, false});
    EXPECT_THAT(seats, ElementsAre(1, 2));
    world->note_end(1, true, "");
    say(2, elastic::reform{1, true, false});
    EXPECT_THAT(done, ElementsAre("begin 1", HasSubstr("give up: ")));
}

TEST_F(member_world_test, nobody_waits_once_the_run_ends) {
    announce_all();
    lose(0);
    for (int const rank : {1, 2}) ASSERT_TRUE(hear(rank));
    world->close();
    for (int const rank : {1, 2}) say(rank, elastic::reform{0, true, false});
    EXPECT_THAT(done, IsEmpty());
    EXPECT_FALSE(hear(1));
}

TEST_F(member_world_test, a_spare_that_waits_comes_in_when_a_rank_is_lost) {
    options.least_ranks = size;
    announce_all();
    add_spare(3);
    EXPECT_THAT(done, ElementsAre("waits 3"));
    for (int rank = 0; rank < 4; ++rank) EXPECT_FALSE(hear(rank)) << "nobody is to meet it before, rank " << rank;
    lose(1);
    say(0, elastic::reform{0, true, false});
    say(2, elastic::reform{0, true, false});
    EXPECT_THAT(done, ElementsAre("waits 3", "begin 1"));
    EXPECT_THAT(seats, ElementsAre(0, 2, 3));
    auto const its = hear_generation(3);
    EXPECT_EQ(its.who.rank, 2);
    EXPECT_EQ(its.who.world_size, size);
    EXPECT_EQ(its.who.local_size, size);
    EXPECT_THAT(its.members, ElementsAre(0, 2, 3));
    EXPECT_TRUE(its.sync);
}

TEST_F(member_world_test, as_many_spares_come_in_as_are_missing) {
    struct {
        char const* what;
        std::vector<int> lost, departed;
        int stopped;
        std::vector<int> seats;
    } const rows[]{{"one of two", {1}, {}, -1, {0, 2, 3}},
                   {"two at once", {0, 1}, {}, -1, {2, 3, 4}},
                   {"nobody takes the place of a rank that has departed", {}, {1}, -1, {0, 2}},
                   {"one is lost, one departs", {0}, {1}, -1, {2, 3}},
                   {"a stopped one is passed over", {1}, {}, 3, {0, 2, 4}}};
    options.least_ranks = 1;
    for (auto const& row : rows) {
        done.clear();
        context.life.now.members.clear();
        SetUp();
        stopped = row.stopped;
        announce_all();
        add_spare(3);
        add_spare(4);
        for (int const seat : row.departed) world->note_end(seat, true, "");
        for (int const seat : row.lost) lose(seat);
        for (int rank = 0; rank < size; ++rank)
            if (!std::ranges::count(row.lost, rank) && !std::ranges::count(row.departed, rank))
                say(rank, elastic::reform{0, true, false});
        EXPECT_EQ(seats, row.seats) << row.what;
    }
}

TEST_F(member_world_test, a_spare_that_has_ended_or_has_not_come_is_passed_over_and_one_that_comes_later_is_told_of) {
    announce_all();
    add_spare(3);
    world->note_end(3, false, "it was killed");
    world->add_spare({"first", 4, size, 4, size, 0, 1, "here", identity::source::muster}, {"here", 4});
    sent.emplace_back();
    lose(1);
    say(0, elastic::reform{0, true, false});
    say(2, elastic::reform{0, true, false});
    EXPECT_THAT(seats, ElementsAre(0, 2));
    sent.assign(sent.size(), {});
    say(4, elastic::hello{});
    EXPECT_EQ(hear(0), elastic::message{elastic::hosts_changed{.added = true}});
    for (int const rank : {0, 2}) say(rank, elastic::reform{1, true, true});
    EXPECT_THAT(seats, ElementsAre(0, 2, 4));
}

TEST_F(member_world_test, a_spare_that_a_generation_leaves_out_is_told_of_again) {
    announce_all();
    lose(1);
    for (int const rank : {0, 2}) say(rank, elastic::reform{0, true, false});
    add_spare(3);
    for (int const rank : {0, 2})
        say(rank, elastic::reform{1, true, false});  // a collective has failed: the state is not that of a commit
    EXPECT_THAT(seats, ElementsAre(0, 2));
    std::optional<elastic::message> last;
    while (auto next = hear(0)) last = std::move(next);
    EXPECT_EQ(last, elastic::message{elastic::hosts_changed{.added = true}});
    for (int const rank : {0, 2}) say(rank, elastic::reform{2, true, true});
    EXPECT_THAT(seats, ElementsAre(0, 2, 3));
}

TEST_F(member_world_test, a_spare_that_is_lost_as_it_comes_in_is_a_lost_rank) {
    announce_all();
    add_spare(3);
    lose(1);
    for (int const rank : {0, 2}) say(rank, elastic::reform{0, true, false});
    lose(3);
    for (int const rank : {0, 2}) say(rank, elastic::reform{1, true, false});
    EXPECT_THAT(done, ElementsAre("waits 3", "begin 1", "begin 2"));
    EXPECT_THAT(seats, ElementsAre(0, 2));
}

TEST_F(member_world_test, spares_that_wait_in_vain_hear_of_it) {
    add_spare(3);
    world->close();
    EXPECT_EQ(hear_generation(3).who.rank, -1);
    EXPECT_FALSE(hear(0));
}

TEST_F(member_world_test, a_word_of_another_generation_changes_nothing) {
    announce_all();
    say(0, elastic::reform{3, true, true});
    for (int const rank : {1, 2}) say(rank, elastic::reform{0, true, true});
    EXPECT_THAT(done, IsEmpty()) << "rank 0 has not asked for generation 1";
}

TEST_F(member_world_test, one_that_comes_to_init_later_hears_of_what_is_lost) {
    announce(0);
    lose(2);
    sent.assign(sent.size(), {});  // what a rank gets before it asks who it is, it does not keep
    say(1, elastic::hello{});
    EXPECT_EQ(hear_generation(1).number, 0);
    auto const word = std::get<elastic::lost>(hear(1).value());
    EXPECT_EQ(word.generation, 0);
    EXPECT_THAT(word.ranks, ElementsAre(2));
}

TEST_F(member_world_test, a_loss_that_is_judged_after_the_first_has_announced_is_told) {
    world->note_end(2, false, "it was killed");
    world->tell_lost();
    EXPECT_FALSE(hear(0)) << "perhaps all end";
    announce_all();
    world->go_on();
    loop.after(duration(0), [this] { loop.stop(); });
    loop.run();
    EXPECT_EQ(hear(0), (elastic::message{elastic::lost{0, {2}, "it was killed"}}));
}

TEST_F(member_world_test, where_nobody_is_gone_the_first_with_the_state_becomes_rank_0_too) {
    announce_all();
    say(0, elastic::reform{0, false, false});
    for (int const rank : {1, 2}) say(rank, elastic::reform{0, true, false});
    EXPECT_THAT(seats, ElementsAre(1, 0, 2));
}

TEST_F(member_world_test, a_lost_rank_ends_the_run_with_its_own_code_where_no_further_generation_is_allowed) {
    options.restarts.resets = 0;
    announce_all();
    world->note_end(2, false, "it was killed");
    world->tell_lost();
    for (int const rank : {0, 1}) say(rank, elastic::reform{0, true, false});
    EXPECT_THAT(done, IsEmpty()) << "whoever judges the loss ends the run";
}

struct hosts_test : member_world_test {
    void SetUp() override {
        options.discovery.command = "discover";
        options.most_ranks = 5;
        member_world_test::SetUp();
        announce_all();
    }
    /// The host has so many slots; what is to be started is.
    void take(int slots) {
        started.clear();
        outcome.hosts.hosts = {{"here", slots}};
        world->take_hosts(outcome.hosts);
        for (auto const& at : started) {
            auto const seat = static_cast<int>(sent.size());
            sent.emplace_back();
            world->add_newcomer({{"first", seat, size, seat, seat + 1, 0, 1, "here", identity::source::muster}}, at);
        }
    }
    void want(std::initializer_list<int> ranks, int after, bool at_commit = true) {
        for (int const rank : ranks) say(rank, elastic::reform{after, true, at_commit});
    }
};

TEST_F(hosts_test, newcomers_come_in_together_at_a_commit_and_members_leave_at_one) {
    take(9);
    EXPECT_THAT(started, ElementsAre(slot{"here", 3}, slot{"here", 4})) << "no more than --max-np";
    say(3, elastic::hello{});
    EXPECT_FALSE(hear(0)) << "another one has been started with it";
    say(4, elastic::hello{});
    EXPECT_EQ(hear(0), elastic::message{elastic::hosts_changed{.added = true}});
    want({0, 1, 2}, 0);
    EXPECT_THAT(seats, ElementsAre(0, 1, 2, 3, 4));
    EXPECT_TRUE(hear_generation(3).sync);
    sent.assign(sent.size(), {});
    take(2);
    EXPECT_THAT(started, IsEmpty());
    EXPECT_EQ(hear(0), elastic::message{elastic::hosts_changed{.removed = true}});
    want({0, 1, 2, 3, 4}, 1);
    EXPECT_THAT(seats, ElementsAre(0, 1));
    EXPECT_EQ(hear(4), elastic::message{elastic::hosts_changed{.removed = true}});
    EXPECT_EQ(hear_generation(4).who.rank, -1);
    take(9);
    EXPECT_THAT(started, ElementsAre(slot{"here", 5}, slot{"here", 6}, slot{"here", 7})) << "those that leave have not ended";
}

TEST_F(hosts_test, one_that_comes_to_init_after_an_offer_hears_of_it_again) {
    take(4);
    say(3, elastic::hello{});
    EXPECT_EQ(hear(0), elastic::message{elastic::hosts_changed{.added = true}});
    say(0, elastic::hello{});
    EXPECT_EQ(hear_generation(0).number, 0);
    EXPECT_EQ(hear(0), elastic::message{elastic::hosts_changed{.added = true}});
}

TEST_F(hosts_test, one_that_is_killed_since_its_slot_is_gone_does_not_come_in) {
    take(4);
    say(3, elastic::hello{});
    take(3);
    EXPECT_THAT(done, ElementsAre("waits 3", "kill 3"));
    want({0, 1, 2}, 0);
    EXPECT_THAT(seats, ElementsAre(0, 1, 2));
}

TEST_F(hosts_test, one_that_ends_before_it_comes_keeps_nobody_waiting) {
    take(5);
    say(3, elastic::hello{});
    world->note_end(4, false, "");
    EXPECT_EQ(hear(0), elastic::message{elastic::hosts_changed{.added = true}});
}

TEST_F(hosts_test, one_that_has_ended_well_takes_no_newcomers_place_twice) {
    take(5);
    say(4, elastic::hello{});
    world->note_end(0, true, "");
    take(5);
    EXPECT_THAT(done, ElementsAre("waits 4")) << "none is killed";
    EXPECT_THAT(started, IsEmpty());
}

TEST_F(hosts_test, one_that_is_not_needed_any_more_is_killed_and_known_as_such) {
    take(5);
    take(4);
    EXPECT_THAT(done, ElementsAre("kill 4"));
    EXPECT_TRUE(world->is_wanted(3));
    EXPECT_FALSE(world->is_wanted(4));
}

TEST_F(hosts_test, nobody_leaves_where_too_few_would_be_left) {
    take(1);
    EXPECT_EQ(hear(0), elastic::message{elastic::hosts_changed{.removed = true}}) << "one of two";
    want({0, 1, 2}, 0);
    EXPECT_THAT(seats, ElementsAre(0, 1));
    sent.assign(sent.size(), {});
    take(1);
    EXPECT_FALSE(hear(0));
    EXPECT_EQ(done.back(), "note: 1 of the slots in use is gone; the ranks there stay until others are there");
}

TEST_F(hosts_test, the_slot_of_a_lost_rank_cools_down) {
    take(3);
    lose(1);
    want({0, 2}, 0, false);
    EXPECT_TRUE(outcome.hosts.is_cooling({"here", 1}, seconds_now()));
    take(3);
    EXPECT_THAT(started, IsEmpty());
}

TEST_F(hosts_test, no_more_generations_than_the_limit) {
    options.restarts.resets = 0;
    take(9);
    EXPECT_THAT(started, IsEmpty());
    want({0, 1, 2}, 0, false);
    EXPECT_THAT(done.back(), HasSubstr("give up: this was generation 0, the last one that --reset-limit 0 allows"));
}

TEST_F(member_world_test, over_nodes_all_tell_where_they_listen_before_any_begins) {
    std::vector<member_world::place> who;
    for (int rank = 0; rank < size; ++rank) {
        std::string const host = rank == 0 ? "n0" : "n1";
        context.life.now.members[static_cast<std::size_t>(rank)].at.host = host;
        who.push_back({{"first", rank, size, rank == 2, rank == 0 ? 1 : 2, rank > 0, 2, host, identity::source::muster},
                       "10.0.0." + host.substr(1)});
    }
    begin(who);
    say(0, elastic::hello{"a"});
    say(2, elastic::hello{"c"});
    EXPECT_FALSE(hear(0));
    say(1, elastic::hello{"b"});
    for (int rank = 0; rank < size; ++rank) {
        auto const first = hear_generation(rank);
        EXPECT_EQ(first.who, who[static_cast<std::size_t>(rank)].who);
        EXPECT_THAT(first.addresses, ElementsAre("a", "b", "c"));
        EXPECT_EQ(first.master, "") << "as the ranks were started with";
        say(rank, elastic::announce{});
    }
    lose(0);
    for (int const rank : {1, 2}) {
        hear(rank);
        say(rank, elastic::reform{0, true, false, 4711 + rank});
    }
    hear(2);  // rank 1 has left
    auto const second = hear_generation(2);
    EXPECT_THAT(second.addresses, ElementsAre("b", "c")) << "also of those that are left on one node";
    EXPECT_EQ(second.master, "10.0.0.1");
    EXPECT_EQ(second.master_port, 4712);
    auto const& place = second.who;
    EXPECT_THAT(
        (std::vector{place.rank, place.world_size, place.local_rank, place.local_size, place.node_rank, place.node_count}),
        ElementsAre(1, 2, 1, 2, 0, 1));
}

TEST_F(member_world_test, over_nodes_one_that_departs_before_it_tells_is_not_waited_for) {
    std::vector<member_world::place> who;
    for (int rank = 0; rank < size; ++rank)
        who.push_back({{"first", rank, size, 0, 1, rank, size, "n" + std::to_string(rank), identity::source::muster}});
    begin(who);
    say(0, elastic::hello{"a"});
    say(1, elastic::hello{"b"});
    world->note_end(2, true, "");
    EXPECT_THAT(hear_generation(0).addresses, ElementsAre("a", "b", ""));
    EXPECT_THAT(hear_generation(1).addresses, ElementsAre("a", "b", ""));
}

TEST_F(member_world_test, spares_that_are_left_alone_have_nothing_to_go_on_from) {
    announce_all();
    add_spare(3);
    std::string why_not;
    for (int rank = 0; rank < size; ++rank) world->note_end(rank, false, "it was killed");
    EXPECT_FALSE(world->can_go_on(why_not));
    EXPECT_THAT(why_not, HasSubstr("spares are left alone"));
}

}  // namespace
}  // namespace muster
