#include "launch/elastic/host_pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.hpp"
#include "launch/elastic/discovery.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr cool_down_range range{.least_s = 10, .most_s = 100};

std::string text_of(std::vector<slot> const& slots) {
    std::string text;
    for (auto const& one : slots) text += (text.empty() ? "" : " ") + one.host + std::to_string(one.index);
    return text;
}

TEST(host_pool, hosts_keep_the_order_in_which_they_came) {
    host_pool pool;
    EXPECT_FALSE(pool.take({}));
    EXPECT_TRUE(pool.take({{"b", 2}, {"a", 1}}));
    EXPECT_EQ(text_of(pool.all()), "b0 b1 a0");
    EXPECT_FALSE(pool.take({{"a", 1}, {"b", 2}})) << "a script need not print them in order";
    EXPECT_TRUE(pool.take({{"c", 1}, {"a", 1}, {"b", 2}}));
    EXPECT_EQ(text_of(pool.all()), "b0 b1 a0 c0");
    EXPECT_TRUE(pool.take({{"c", 1}, {"a", 2}}));
    EXPECT_EQ(text_of(pool.all()), "a0 a1 c0");
    EXPECT_TRUE(pool.take({{"b", 2}, {"c", 1}, {"a", 2}}));
    EXPECT_EQ(text_of(pool.all()), "a0 a1 c0 b0 b1") << "one that comes back comes last";
    EXPECT_TRUE(pool.take({}));
    EXPECT_THAT(pool.all(), IsEmpty());
}

TEST(host_pool, a_slot_that_failed_cools_down_longer_each_time_and_never_for_ever) {
    struct {
        char const* what;
        std::vector<double> failures;  ///< when
        double chance;
        double until;
    } const rows[]{
        {"the first", {0}, 0, 10},
        {"with chance", {0}, 1, 20},
        {"half of it", {0}, 0.5, 15},
        {"the second", {0, 10}, 0, 30},
        {"the third", {0, 10, 30}, 0, 70},
        {"the fourth reaches the most", {0, 10, 30, 70}, 0, 150},
        {"the fifth", {0, 10, 30, 70, 170}, 1, 270},
        {"long after the last one it is a first one", {0, 10, 130.1}, 0, 140.1},
        {"chance out of range", {0}, 7, 20},
    };
    for (auto const& row : rows) {
        host_pool pool{.hosts = {{"a", 2}}};
        for (double const when : row.failures) pool.note_failure({"a", 1}, range, when, row.chance);
        EXPECT_DOUBLE_EQ(pool.cooling.front().until_s, row.until) << row.what;
        EXPECT_EQ(text_of(pool.usable(row.until - 0.01)), "a0") << row.what;
        EXPECT_EQ(text_of(pool.usable(row.until)), "a0 a1") << row.what;
        EXPECT_EQ(pool.next_free_s(row.failures.back()), row.until) << row.what;
        EXPECT_EQ(pool.next_free_s(row.until), std::nullopt) << row.what;
    }
    host_pool pool{.hosts = {{"a", 1}}};
    for (int i = 0; i < 2000; ++i) pool.note_failure({"a", 0}, range, i, 1);
    EXPECT_DOUBLE_EQ(pool.cooling.front().until_s, 1999 + 100);
}

TEST(host_pool, a_host_cools_down_where_it_is_lost_or_all_of_its_slots_failed) {
    host_pool pool{.hosts = {{"a", 2}, {"b", 1}, {"c", 2}}};
    pool.note_lost("c", range, 0, 0);
    EXPECT_EQ(text_of(pool.usable(0)), "a0 a1 b0");
    pool.note_failure({"a", 0}, range, 0, 0);
    EXPECT_EQ(text_of(pool.usable(0)), "a1 b0") << "one slot's failure leaves the host's others";
    pool.note_failure({"a", 1}, range, 5, 0);
    EXPECT_EQ(text_of(pool.usable(5)), "b0");
    EXPECT_EQ(text_of(pool.usable(10)), "b0 c0 c1") << "a's first slot cools down with its host";
    EXPECT_EQ(text_of(pool.usable(15)), "a0 a1 b0 c0 c1");
    EXPECT_EQ(pool.next_free_s(5), 10);
}

TEST(host_pool, what_cools_down_goes_on_while_its_host_is_gone) {
    host_pool pool{.hosts = {{"a", 1}, {"b", 1}}};
    pool.note_lost("a", range, 0, 0);
    pool.take({{"b", 1}});
    EXPECT_EQ(pool.next_free_s(1), std::nullopt) << "nothing comes of it";
    pool.take({{"b", 1}, {"a", 1}});
    EXPECT_EQ(text_of(pool.usable(5)), "b0");
    EXPECT_EQ(text_of(pool.usable(10)), "b0 a0");
    pool.note_failure({"gone", 3}, range, 0, 0);
    EXPECT_EQ(text_of(pool.usable(10)), "b0 a0");
}

TEST(host_pool, a_slot_stays_idle_as_long_as_it_or_its_host_cools_down) {
    host_pool pool{.hosts = {{"a", 2}}};
    pool.note_failure({"a", 0}, range, 0, 0);
    EXPECT_EQ(pool.time_left({"a", 1}, 4), 0);
    pool.note_lost("a", range, 1, 0);
    EXPECT_EQ(pool.time_left({"a", 0}, 4), 7);
    EXPECT_EQ(pool.time_left({"a", 1}, 4), 7);
    EXPECT_EQ(pool.time_left({"a", 1}, 12), 0);
}

TEST(host_pool, slots_that_failed_are_those_that_members_do_not_have_by_their_new_numbers) {
    host_pool pool{.hosts = {{"a", 5}, {"b", 1}}};
    pool.note_failure({"a", 3}, range, -100, 0);  // long ago
    pool.note_failure({"a", 1}, range, 0, 0);
    pool.note_failure({"a", 2}, range, 0, 0);
    pool.note_failure({"b", 0}, range, 0, 0);
    pool.make_room_for({{5, {"a", 0}}, {6, {"a", 1}}, {7, {"a", 2}}, {8, {"b", 0}}}, 1);
    EXPECT_EQ(text_of(pool.usable(1)), "a0 a1 a2");
    EXPECT_EQ(text_of(pool.usable(10)), "a0 a1 a2 a3 a4 b0");
    pool.note_failure({"a", 4}, range, 10, 0);
    EXPECT_EQ(pool.time_left({"a", 4}, 10), 20) << "its second one";
}

TEST(host_pool, is_described) {
    host_pool pool{.hosts = {{"a", 2}, {"b", 1}}};
    EXPECT_EQ(host_pool{}.describe(0), "no host");
    pool.note_failure({"a", 0}, range, 0, 0);
    EXPECT_EQ(pool.describe(4), "a: 1 of 2 slots (after failures there, the rest in 6 s at most), b: 1 slot");
}

TEST(find_host_news, says_what_makes_another_generation_worth_while) {
    auto const on = [](std::initializer_list<slot> slots) {
        std::vector<member> members;
        for (auto const& at : slots) members.push_back({static_cast<int>(members.size()), at, false});
        return members;
    };
    host_pool pool{.hosts = {{"a", 2}, {"b", 1}}};
    EXPECT_THAT(find_host_news(pool, on({{"a", 0}, {"a", 1}, {"b", 0}}), 9, 0), IsEmpty());
    EXPECT_EQ(find_host_news(pool, on({{"a", 0}}), 9, 0), "2 more slots can be used");
    EXPECT_EQ(find_host_news(pool, on({{"a", 0}}), 2, 0), "1 more slot can be used");
    EXPECT_THAT(find_host_news(pool, on({{"a", 0}}), 1, 0), IsEmpty());
    EXPECT_EQ(find_host_news(pool, on({{"a", 0}, {"c", 0}}), 2, 0), "1 of the slots in use is gone, 1 more slot can be used");
    EXPECT_EQ(find_host_news(pool, on({{"c", 0}, {"c", 1}, {"a", 1}}), 1, 0), "2 of the slots in use are gone");
    pool.note_failure({"a", 1}, range, 0, 0);
    EXPECT_THAT(find_host_news(pool, on({{"a", 0}, {"b", 0}}), 9, 5), IsEmpty()) << "it cools down";
    EXPECT_EQ(find_host_news(pool, on({{"a", 0}, {"b", 0}}), 9, 10), "1 more slot can be used");
    EXPECT_THAT(find_host_news(pool, on({{"a", 0}, {"a", 1}}), 2, 5), IsEmpty()) << "a slot that has failed and is in use again";
}

TEST(find_host_change, starts_newcomers_ends_them_and_has_members_leave) {
    struct {
        char const *what, *members, *coming, *busy;
        int most;
        char const *start, *end, *leave;
    } const rows[]{{"all is as it should be", "a0 a1 b0", "", "", 9, "", "", ""},
                   {"more slots", "a0", "", "", 9, "a1 b0", "", ""},
                   {"no more than the most", "a0", "", "", 2, "a1", "", ""},
                   {"they are on their way", "a0", "a1 b0", "", 9, "", "", ""},
                   {"a host is gone", "a0 c0", "", "", 9, "a1 b0", "", "c0"},
                   {"… and its ranks take no other's place", "a0 c0", "", "", 2, "a1", "", "c0"},
                   {"… before a newcomer there has come in", "a0 a1", "c0 b0", "", 9, "", "c0", ""},
                   {"fewer are wanted than are on their way", "a0", "a1 b0", "", 2, "", "b0", ""},
                   {"the last one there has not ended yet", "a0", "", "a1", 9, "b0", "", ""},
                   {"none are taken in", "a0 c0", "", "", 0, "", "", "c0"}};
    auto const all = [](std::string const& text) {
        std::vector<slot> found;
        for (std::size_t at = 0; at < text.size(); at += 3) found.push_back({text.substr(at, 1), text[at + 1] - '0'});
        return found;
    };
    host_pool const pool{.hosts = {{"a", 2}, {"b", 1}}};
    for (auto const& row : rows) {
        std::vector<member> members;
        for (auto const& at : all(row.members)) members.push_back({static_cast<int>(members.size()), at, true});
        auto const change = find_host_change(pool, members, all(row.coming), all(row.busy), row.most, 0);
        EXPECT_EQ(text_of(change.start), row.start) << row.what;
        EXPECT_EQ(text_of(change.end), row.end) << row.what;
        EXPECT_EQ(text_of(change.leave), row.leave) << row.what;
    }
    auto cooling = pool;
    cooling.note_failure({"a", 1}, range, 0, 0);
    EXPECT_EQ(text_of(find_host_change(cooling, {{0, {"a", 0}, true}}, {}, {}, 9, 5).start), "b0") << "a1 cools down";
}

TEST(lost_in_pool, are_slots_that_cool_down_or_are_gone) {
    host_pool pool{.hosts = {{"a", 2}, {"b", 1}}};
    pool.note_failure({"a", 1}, range, 0, 0);
    EXPECT_EQ(text_of(lost_in_pool(pool, {{0, {"c", 0}, false}, {1, {"b", 0}, false}}, 5).lost_slots), "c0 a1");
    EXPECT_THAT(lost_in_pool(pool, {}, 10).lost_slots, IsEmpty());
}

// ------------------------------------------------------------------------------------------------ the script

TEST(parse_discovered, takes_what_horovod_takes) {
    using hosts = std::vector<pool_host>;
    EXPECT_EQ(parse_discovered("a:2\nb\n", 4), (hosts{{"a", 2}, {"b", 4}}));
    EXPECT_EQ(parse_discovered("", 4), hosts{}) << "no hosts yet";
    EXPECT_EQ(parse_discovered("\n \r\n", 4), hosts{});
    EXPECT_EQ(parse_discovered(" n1.job.ns.svc \r\nb:3\t\n", 1), (hosts{{"n1.job.ns.svc", 1}, {"b", 3}}));
    EXPECT_EQ(parse_discovered("a:2\na:2\nb\nb", 1), (hosts{{"a", 2}, {"b", 1}})) << "named twice is there once";
    EXPECT_EQ(parse_discovered("a:1\na:3\na:2", 1), (hosts{{"a", 3}}));
    EXPECT_EQ(parse_discovered("a:0\nb:1", 1), (hosts{{"b", 1}}));
    for (auto const* bad : {"a:x", "a:2:3", "a:", "a:-1", ":2", "-a", "a b", "a;b", "a:99999999999", "a/b"})
        EXPECT_THROW(parse_discovered(bad, 1), parse_error) << bad;
}

struct script_file {
    explicit script_file(std::string const& text) {
        std::ofstream(path) << "#!/bin/sh\n" << text;
        ::chmod(path.c_str(), 0700);
    }
    ~script_file() { ::unlink(path.c_str()); }
    std::string path = testing::TempDir() + "discover hosts." + std::to_string(::getpid());
};

environment path_alone() {
    environment variables;
    variables.set("PATH", "/usr/bin:/bin");
    return variables;
}

TEST(parse_discovered, takes_addresses_in_brackets) {
    EXPECT_THAT(parse_discovered("[fd00::5:1]:1\n[::1]\n[10.0.0.1]:3\n10.0.0.2:4\n", 2),
                ElementsAre(pool_host{"fd00::5:1", 1}, pool_host{"::1", 2}, pool_host{"10.0.0.1", 3}, pool_host{"10.0.0.2", 4}));
    for (auto const* text : {"fd00::5:1", "fd00::5:1:1", "[fd00::5:1]1", "[fd00::5:1]:x", "[fe80::1%eth0]:1", "[fd00::5:1"})
        EXPECT_THROW(parse_discovered(text, 2), parse_error) << text;
}

// With work that grows as the square of their number this takes minutes.
TEST(find_host_change, of_many_hosts_takes_no_time) {
    constexpr int many = 50'000;
    std::string text;
    for (int i = 0; i < many; ++i) text += "h" + std::to_string(i) + ":2\n";
    host_pool pool;
    std::vector<member> members;
    for (int round = 0; round < 2; ++round) {
        pool.take(parse_discovered(text, 1));
        if (members.empty())
            for (auto const& at : pool.all()) members.push_back({static_cast<int>(members.size()), at, true});
        pool.note_failure({"h1", 0}, range, 0, 0);
        EXPECT_EQ(find_host_change(pool, members, {}, {}, 2 * many, 1), host_change{});
        EXPECT_EQ(find_host_news(pool, members, 2 * many, 1), "");
        EXPECT_EQ(lost_in_pool(pool, members, 1).lost_slots.size(), 2u) << "one failed slot, as a member's and as the pool's";
        auto const next = next_generation(pool.all(), {0, members, 2 * many}, {.least = 1, .most = 2 * many, .restart = true},
                                          lost_in_pool(pool, members, 1));
        EXPECT_EQ(next.then.members.size(), 2u * many - 1);
    }
}

TEST(ask_hosts, runs_a_file_or_a_command) {
    script_file const file("echo a:2; echo b");
    EXPECT_EQ(ask_hosts({file.path, 3}, path_alone()), (discovery_answer{.hosts = {{"a", 2}, {"b", 3}}}));
    EXPECT_EQ(ask_hosts({"printf 'a\\nb:1\\n' | sort -r", 1}, path_alone()), (discovery_answer{.hosts = {{"b", 1}, {"a", 1}}}));
    EXPECT_EQ(ask_hosts({"true", 1}, path_alone()), discovery_answer{});
    EXPECT_EQ(ask_hosts({"cat", 1}, path_alone()), discovery_answer{}) << "its input is at its end";
}

TEST(ask_hosts, says_what_is_wrong) {
    auto const fault = [](std::string const& command) { return ask_hosts({command, 1}, path_alone()).fault; };
    EXPECT_EQ(fault("echo a; echo first >&2; echo 'no server' >&2; exit 3"), "ended with code 3: no server");
    EXPECT_EQ(fault("kill -9 $$"), "ended with code 137");
    EXPECT_THAT(fault("/no/such/script"), HasSubstr("ended with code 127"));
    EXPECT_THAT(fault("echo a:x"), HasSubstr("no number of slots; print HOST or HOST:SLOTS"));
    EXPECT_THAT(fault("while echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; do :; done"),
                HasSubstr("printed more than 1024 KiB"));
}

TEST(discovery, tells_of_changes_and_ends_with_its_script) {
    script_file const counter(
        "n=$(cat \"$0.n\" 2>/dev/null || echo 0); echo $((n + 1)) >\"$0.n\"\n"
        "[ $n != 2 ] || exit 7\n[ $n -lt 4 ] || exec sleep 1000\nseq -f 'h%g' $((n > 1 ? 2 : 1))\n");
    std::vector<discovery_answer> seen;
    event_loop loop;
    discovery asks({counter.path, 1}, path_alone(), duration(0.02));
    asks.watch(loop, [&](discovery_answer const& answer) {
        seen.push_back(answer);
        if (seen.size() == 3) loop.stop();
    });
    loop.run();
    EXPECT_THAT(seen, ElementsAre(discovery_answer{.hosts = {{"h1", 1}}}, discovery_answer{.fault = "ended with code 7"},
                                  discovery_answer{.hosts = {{"h1", 1}, {"h2", 1}}}))
        << "the second answer was the first one again";
    asks.stop();
    asks.stop();
    ::unlink((counter.path + ".n").c_str());
}

}  // namespace
}  // namespace muster
