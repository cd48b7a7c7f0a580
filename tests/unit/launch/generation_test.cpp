// Tables of the next generation and of restarts.
#include "launch/elastic/generation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/elastic/run_life.hpp"
#include "launch/settings/settings_to_options.hpp"

namespace muster {
namespace {

using step = generation_choice::step;
using testing::HasSubstr;
using testing::IsEmpty;

slot slot_of(std::string const& text) {  // "a0"
    return {text.substr(0, 1), std::stoi(text.substr(1))};
}

std::vector<slot> slots(std::string const& text) {
    std::vector<slot> all;
    for (auto const word : split(text, ' '))
        if (!word.empty()) all.push_back(slot_of(std::string(word)));
    return all;
}

/// "0:a0* 1:a1": numbers and slots, a star at those that have the state.
generation made_of(int number, std::string const& text, int born) {
    generation made{number, {}, born};
    for (auto const word : split(text, ' ')) {
        if (word.empty()) continue;
        std::string const one(word.substr(0, word.find('*')));
        auto const colon = one.find(':');
        made.members.push_back({std::stoi(one), slot_of(one.substr(colon + 1)), word.ends_with('*')});
    }
    return made;
}

std::string text_of(generation const& made) {
    std::vector<std::string> words;
    for (auto const& one : made.members)
        words.push_back(std::to_string(one.number) + ":" + one.at.host + std::to_string(one.at.index) +
                        (one.has_state ? "*" : ""));
    return join(words, " ");
}

TEST(next_generation, follows_from_slots_members_wishes_and_events) {
    constexpr auto four = "0:a0* 1:a1* 2:b0* 3:b1*";
    constexpr bool restart = true;
    struct {
        char const *what, *pool, *now;
        generation_wishes wanted;
        generation_events events;
        step next;
        char const* then;
    } const rows[]{
        {"nothing has happened", "a0 a1 b0 b1", four, {2, 4}, {}, step::keep, ""},
        {"the world shrinks at once",
         "a0 a1 b0 b1",
         four,
         {2, 4},
         {.ended = {2}, .lost_slots = slots("b0")},
         step::change,
         "0:a0* 1:a1* 3:b1*"},
        {"the slot of a dead member is free for another",
         "a0 a1 b0 b1",
         four,
         {2, 4},
         {.ended = {2}},
         step::change,
         "0:a0* 1:a1* 3:b1* 4:b0"},
        {"rank 0 is gone: the next one has the state, and the newcomer comes last",
         "a0 a1 b0 b1",
         four,
         {2, 4},
         {.ended = {0}},
         step::change,
         "1:a1* 2:b0* 3:b1* 4:a0"},
        {"two at once",
         "a0 a1 b0 b1 c0",
         four,
         {2, 4},
         {.ended = {0, 3}, .lost_slots = slots("a0 b1")},
         step::change,
         "1:a1* 2:b0* 4:c0"},
        {"a host with all its slots", "a0 a1 b0 b1", four, {2, 4}, {.lost_hosts = {"b"}}, step::change, "0:a0* 1:a1*"},
        {"slots that are given back", "a0 a1 b0 b1", four, {1, 4}, {.leaving = slots("a0 b1")}, step::change, "1:a1* 2:b0*"},
        {"… and others that have come",
         "b0 b1 c0",
         four,
         {2, 4},
         {.leaving = slots("a0 a1"), .at_commit = true},
         step::change,
         "2:b0* 3:b1* 4:c0"},
        {"no fewer than the least", "a0 b0 b1", four, {3, 4}, {.leaving = slots("a0 a1")}, step::change, "0:a0* 2:b0* 3:b1*"},
        {"nobody is left with the state: one that has it stays until others have it",
         "b0 b1",
         "0:a0* 1:a1*",
         {2, 2},
         {.leaving = slots("a0 a1"), .at_commit = true},
         step::change,
         "0:a0* 4:b0"},
        {"… and then it leaves",
         "b0 b1",
         "0:a0* 2:b0*",
         {2, 2},
         {.leaving = slots("a0"), .at_commit = true},
         step::change,
         "2:b0* 4:b1"},
        {"all are to leave, and nobody comes", "", "0:a0*", {1, 4}, {.leaving = slots("a0")}, step::keep, ""},
        {"spares before shrinking",
         "a0 a1 b0 b1 c0 c1",
         four,
         {2, 4},
         {.lost_hosts = {"a"}},
         step::change,
         "2:b0* 3:b1* 4:c0 5:c1"},
        {"spares that are lost, too", "a0 a1 b0 b1 c0 c1", four, {2, 4}, {.lost_hosts = {"a", "c"}}, step::change, "2:b0* 3:b1*"},
        {"a spare that waits keeps the least",
         "a0 a1 b0 b1 a2",
         four,
         {4, 4},
         {.ended = {1}, .lost_slots = slots("a1")},
         step::change,
         "0:a0* 2:b0* 3:b1* 4:a2"},
        {"two lost and one spare",
         "a0 a1 b0 b1 a2",
         four,
         {3, 4},
         {.ended = {0, 1}, .lost_slots = slots("a0 a1")},
         step::change,
         "2:b0* 3:b1* 4:a2"},
        {"too few, with the spare",
         "a0 a1 b0 b1 a2",
         four,
         {4, 4},
         {.ended = {0, 1}, .lost_slots = slots("a0 a1")},
         step::wait,
         ""},
        {"too few", "a0 a1 b0 b1", four, {3, 4}, {.lost_hosts = {"a"}}, step::wait, ""},
        {"none is left", "a0 a1", "0:a0* 1:a1*", {0, 2}, {.lost_hosts = {"a"}}, step::wait, ""},
        {"a free slot alone changes nothing", "a0 a1 b0 b1 c0", four, {2, 5}, {}, step::keep, ""},
        {"the run grows at a commit",
         "a0 a1 b0 b1 c0 c1",
         four,
         {2, 5},
         {.at_commit = true},
         step::change,
         "0:a0* 1:a1* 2:b0* 3:b1* 4:c0"},
        {"and not beyond what is wanted", "a0 a1 b0 b1 c0", four, {2, 4}, {.at_commit = true}, step::keep, ""},
        {"no commit: a loss is made good, no more",
         "a0 a1 b0 b1 c0 c1 c2",
         four,
         {2, 6},
         {.lost_slots = slots("b1")},
         step::change,
         "0:a0* 1:a1* 2:b0* 4:c0"},
        {"rank 0 has the state, whoever came first",
         "a0 a1 b0",
         "3:a0 4:a1* 5:b0*",
         {1, 3},
         {.ended = {5}, .lost_slots = slots("b0")},
         step::change,
         "4:a1* 3:a0"},
        {"nobody has it", "a0 a1 b0", "3:a0 4:a1 5:b0", {1, 3}, {.lost_slots = slots("a0")}, step::change, "4:a1 5:b0"},
        {"an event of a member that left long ago",
         "a0 a1 b0 b1",
         four,
         {2, 4},
         {.ended = {17}, .lost_hosts = {"z"}},
         step::keep,
         ""},
        {"a restart: other members on the same slots",
         "a0 a1 b0 b1",
         four,
         {4, 4, restart},
         {.ended = {1}},
         step::change,
         "4:a0 5:a1 6:b0 7:b1"},
        {"a restart without a host", "a0 a1 b0 b1", four, {2, 4, restart}, {.lost_hosts = {"a"}}, step::change, "4:b0 5:b1"},
        {"a restart with a spare host",
         "a0 a1 b0 b1 c0 c1",
         four,
         {4, 4, restart},
         {.lost_hosts = {"a"}},
         step::change,
         "4:b0 5:b1 6:c0 7:c1"},
        {"on a restart ranks of one host are neighbors",
         "a0 a1 b0 b1 c0 a2",
         four,
         {4, 4, restart},
         {.lost_hosts = {"b"}},
         step::change,
         "4:a0 5:a1 6:a2 7:c0"},
        {"a restart fills up what was lost before",
         "a0 a1 b0 b1",
         "0:a0 1:a1",
         {2, 4, restart},
         {},
         step::change,
         "4:a0 5:a1 6:b0 7:b1"},
        {"a restart with too few", "a0 a1 b0 b1", four, {4, 4, restart}, {.lost_hosts = {"b"}}, step::wait, ""},
    };
    for (auto const& row : rows) {
        auto const choice = next_generation(slots(row.pool), made_of(6, row.now, 4), row.wanted, row.events);
        EXPECT_EQ(choice.next, row.next) << row.what;
        EXPECT_EQ(text_of(choice.then), row.then) << row.what;
        if (row.next == step::change) {
            EXPECT_EQ(choice.then.number, 7) << row.what;
        }
    }
}

TEST(next_generation, says_who_left_and_who_came) {
    auto const four = made_of(0, "0:a0* 1:a1* 2:b0* 3:b1*", 4);
    auto const why = [&](char const* pool, generation_events const& events, int least = 1) {
        return next_generation(slots(pool), four, {least, 4}, events).why;
    };
    EXPECT_EQ(why("a0 a1 b0 b1 c0", {.lost_slots = slots("b0")}), "rank 2 on b is gone, 1 comes in on c");
    EXPECT_EQ(why("a0 a1 b0 b1", {.lost_hosts = {"b"}}), "2 ranks on b are gone") << "how many go on is told with it";
    EXPECT_EQ(next_generation(slots("a0 a1 b0 b1"), four, {1, 4, true}, {.lost_hosts = {"b"}}).why,
              "2 ranks on b are gone; 2 ranks instead of 4");
    EXPECT_EQ(why("a0 a1 b0 b1", {.lost_hosts = {"b"}}, 3), "2 ranks on b are gone; 2 ranks instead of 4: 3 needed");
    generation const full{0, {{0, {"n1.lab.example", 0}, true}, {1, {"n2.lab.example", 0}, true}}, 2};
    std::vector<slot> const pool{{"n1.lab.example", 0}, {"10.0.0.3", 0}};
    EXPECT_EQ(next_generation(pool, full, {1, 2}, {.lost_hosts = {"n2.lab.example"}}).why,
              "rank 1 on n2 is gone, 1 comes in on 10.0.0.3")
        << "as other messages call them";
}

TEST(next_generation, member_numbers_are_never_used_again) {
    auto now = made_of(0, "0:a0* 1:a1* 2:a2*", 3);
    std::vector<int> seen{0, 1, 2};
    for (int i = 0; i < 20; ++i) {
        bool const restart = i % 3 == 0;
        auto const choice = next_generation(slots("a0 a1 a2 b0"), now, {1, 3, restart}, {.ended = {now.members[i % 3].number}});
        ASSERT_EQ(choice.next, step::change);
        for (auto const& one : choice.then.members) {
            bool const stays = std::ranges::any_of(now.members, [&](auto const& m) { return m.number == one.number; });
            if (!stays) {
                EXPECT_EQ(std::ranges::count(seen, one.number), 0) << one.number;
            }
            seen.push_back(one.number);
        }
        EXPECT_EQ(choice.then.members.size(), 3u);
        now = choice.then;
    }
}

// ------------------------------------------------------------------------------------------------ restarts

generation_end failed(int code, double at_s, end_kind kind = end_kind::rank, double lived_s = 1) {
    return {.kind = kind, .code = code, .lived_s = lived_s, .at_s = at_s};
}

TEST(restart_policy, says_whether_another_generation_follows) {
    auto const policy = [](int most, std::vector<std::string> const& causes = {}) { return make_restart_policy(most, causes); };
    auto const idle = [](generation_end end) {
        end.standstill = "x has not grown";
        return end;
    };
    struct {
        char const* what;
        restart_policy asked;
        std::vector<generation_end> ends;
        bool again;
        char const* why;
    } const rows[]{
        {"no restarts asked for", policy(0), {failed(1, 0)}, false, ""},
        {"nothing has ended", policy(3), {}, false, ""},
        {"a rank failed", policy(3), {failed(1, 0)}, true, ""},
        {"a lost node", policy(3), {failed(125, 0, end_kind::node)}, true, ""},
        {"an engine", policy(3), {failed(125, 0, end_kind::other)}, true, ""},
        {"success, or the user's wish", policy(3), {failed(0, 0, end_kind::last)}, false, ""},
        {"a time limit", policy(3), {failed(124, 0, end_kind::last)}, false, ""},
        {"the last restart", policy(1), {failed(1, 0), failed(2, 1)}, false, "restart 1 of 1"},
        {"the one before", policy(2), {failed(1, 0), failed(2, 1)}, true, ""},
        {"three alike",
         policy(9),
         {failed(1, 0), failed(1, 30), failed(1, 60)},
         false,
         "3 failures alike within 60 s (exit code 1)"},
        {"three alike, but more than a minute", policy(9), {failed(1, 0), failed(1, 30), failed(1, 60.1)}, true, ""},
        {"three, of which one is another", policy(9), {failed(1, 0), failed(2, 1), failed(1, 2)}, true, ""},
        {"three codes, one of a node", policy(9), {failed(125, 0), failed(125, 1, end_kind::node), failed(125, 2)}, true, ""},
        {"only the last three count", policy(9), {failed(2, 0), failed(1, 1), failed(1, 2), failed(1, 3)}, false, "alike"},
        {"this code", policy(9, {"3", "KILL"}), {failed(3, 0)}, true, ""},
        {"this signal", policy(9, {"3", "SIGKILL"}), {failed(137, 0)}, true, ""},
        {"another code", policy(9, {"3", "KILL"}), {failed(4, 0)}, false, "--restart-on does not name exit code 4"},
        {"a node, not named", policy(9, {"3"}), {failed(125, 0, end_kind::node)}, false, "--restart-on does not name node"},
        {"a node's code is none of a rank", policy(9, {"125"}), {failed(125, 0, end_kind::node)}, false, "does not name node"},
        {"only nodes", policy(9, {"node"}), {failed(1, 0)}, false, "does not name exit code 1"},
        {"only nodes, and one is lost", policy(9, {"node"}), {failed(125, 0, end_kind::node)}, true, ""},
        {"one that came no further", policy(9), {failed(1, 0), idle(failed(2, 9))}, true, ""},
        {"two in a row", policy(9), {idle(failed(1, 0)), idle(failed(2, 9))}, false, "came no further: x has not grown"},
        {"hosts come", policy(1), {failed(1, 0), failed(75, 1, end_kind::hosts)}, true, ""},
        {"hosts count for no restart",
         policy(1),
         {failed(75, 0, end_kind::hosts), failed(75, 1, end_kind::hosts), failed(1, 2)},
         true,
         ""},
        {"a restart is one",
         policy(1),
         {failed(75, 0, end_kind::hosts), failed(1, 1), failed(1, 2)},
         false,
         "this was restart 1 of 1"},
        {"hosts, with causes", policy(1, {"3"}), {failed(75, 0, end_kind::hosts)}, true, ""},
        {"hosts without restarts", policy(0), {failed(75, 0, end_kind::hosts)}, true, ""},
        {"no reset",
         {.most = 9, .resets = 0},
         {failed(75, 0, end_kind::hosts)},
         false,
         "this was restart 0 of 0 (--reset-limit)"},
        {"one reset", {.most = 9, .resets = 1}, {failed(75, 0, end_kind::hosts)}, true, ""},
        {"the last reset",
         {.most = 9, .resets = 1},
         {failed(75, 0, end_kind::hosts), failed(1, 1)},
         false,
         "this was restart 1 of 1 (--reset-limit)"},
        {"a reset in place is one",
         {.most = 9, .resets = 1},
         {{.kind = end_kind::rank, .in_place = true}, failed(1, 1)},
         false,
         "this was restart 1 of 1 (--reset-limit)"},
        {"two, and one between", policy(9), {idle(failed(1, 0)), failed(2, 9), idle(failed(3, 19))}, true, ""},
    };
    for (auto const& row : rows) {
        auto const decision = decide_restart(row.asked, row.ends, 0.5);
        EXPECT_EQ(decision.again, row.again) << row.what;
        EXPECT_THAT(decision.why, HasSubstr(row.why)) << row.what;
        if (row.why[0] == '\0') {
            EXPECT_THAT(decision.why, IsEmpty()) << row.what;
        }
    }
}

TEST(restart_policy, waits_longer_each_time) {
    std::vector<generation_end> ends;
    double const expected[]{0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30};
    for (int i = 0; i < 10; ++i) {
        ends.push_back(failed(i + 1, i));
        EXPECT_NEAR(decide_restart({.most = 99}, ends, 0.5).delay.count(), expected[i], 1e-9);
        EXPECT_NEAR(decide_restart({.most = 99}, ends, 0).delay.count(), 0.75 * expected[i], 1e-9);
        EXPECT_NEAR(decide_restart({.most = 99}, ends, 1).delay.count(), 1.25 * expected[i], 1e-9);
    }
    ends.push_back(failed(50, 100, end_kind::rank, 60));
    EXPECT_NEAR(decide_restart({.most = 99}, ends, 0.5).delay.count(), 0.2, 1e-9) << "after a long life it begins anew";
    ends.push_back(failed(51, 101));
    EXPECT_NEAR(decide_restart({.most = 99}, ends, 0.5).delay.count(), 0.2, 1e-9);
}

TEST(restart_policy, causes_are_codes_signals_and_node) {
    EXPECT_EQ(make_restart_policy(2, {"7", "TERM", "SIGSEGV", "node"}),
              (restart_policy{.most = 2, .codes = {7, 128 + SIGTERM, 128 + SIGSEGV}, .on_node = true}));
    for (auto const* good : {"1", "255", "KILL", "SIGKILL", "node"}) EXPECT_FALSE(check_restart_cause(good)) << good;
    for (auto const* bad : {"0", "256", "-1", "", "NODE", "SIGNONE", "any"}) EXPECT_TRUE(check_restart_cause(bad)) << bad;
}

TEST(restart_policy, generations_that_were_followed_in_place_are_no_restarts) {
    generation_end const survived{.kind = end_kind::rank, .code = 137, .in_place = true};
    std::vector<generation_end> ends(5, survived);
    ends.push_back({.kind = end_kind::rank, .code = 137});
    EXPECT_TRUE(decide_restart({.most = 1}, ends, 0.5).again);
    EXPECT_EQ(without_survived(ends).size(), 1u);
}

TEST(run_life, is_the_same_for_the_next_launcher) {
    run_life life{.began_s = 12.5,
                  .output_dir = "/tmp/a b",
                  .pool = slots("a0 b1"),
                  .now = made_of(3, "7:a0* 8:b1", 9),
                  .lost_hosts = {"c"},
                  .ends = {failed(3, 1.5, end_kind::node), failed(75, 2.5, end_kind::hosts)},
                  .hosts = {.hosts = {{"a", 2}, {"b", 1}}, .cooling = {{{"a", 1}, 3, 7.25}, {{"c", -1}, 1, 9}}},
                  .first_life = 4,
                  .first_size = 99};
    life.ends.front().cause = "rank 1 \"quoted\"\n\xff";
    life.ends.front().lost_hosts = {"c"};
    life.ends.front().in_place = true;
    life.ends.back().saved_step = 1LL << 40;
    life.ends.back().advanced = true;
    EXPECT_EQ(parse_life(to_text(life)), life);
    EXPECT_EQ(parse_life(""), run_life{});
    EXPECT_TRUE(parse_life("").is_first());
    for (auto const* bad : {"{", "[]", "{}", R"({"began_s":"x"})"}) EXPECT_THROW(parse_life(bad), error) << bad;
}

}  // namespace
}  // namespace muster
