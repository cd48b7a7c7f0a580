#include "launch/watch/stop_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace muster {
namespace {

/// Three ranks that run; `stopped_at` says which of them look n finds stopped. A look that comes late forgets those before, so none is counted on to come in time.
struct stop_watch_test : testing::Test {
    stop_watch_test() {
        for (int rank = 0; rank < 3; ++rank) known.ranks.push_back({.rank = rank, .now = rank_evidence::state::running});
        known.hosts = {"node1"};
    }
    void run(std::function<std::vector<int>(int look)> const& stopped_at, int most_looks) {
        stop_watch watch(
            loop, known,
            {[] { return true; },
             [&](std::vector<int> const& ranks, auto const& then) {
                 looked_at = ranks;
                 then({stopped_at(looks), blocked});
                 if (++looks == most_looks || !killed.empty()) loop.stop();
             },
             [this](int rank) { killed.push_back(rank); }, [this](std::string const& line) { said.push_back(line); }});
        watch.start(duration(0.05));
        loop.run();
    }
    event_loop loop;
    evidence known;
    std::map<int, blocked_wait> blocked;  ///< at each look
    int looks = 0;
    std::vector<int> looked_at, killed;
    std::vector<std::string> said;
};

TEST_F(stop_watch_test, kills_who_is_stopped_at_two_looks_in_a_row) {
    run([](int look) { return look % 2 == 0 ? std::vector{0, 1} : std::vector{1, 2}; }, 1000);
    EXPECT_THAT(looked_at, testing::ElementsAre(0, 1, 2));
    EXPECT_THAT(killed, testing::ElementsAre(1));
    EXPECT_THAT(said, testing::ElementsAre(testing::HasSubstr(
                          "rank 1 on node1 has been stopped (SIGSTOP, or a frozen cgroup) for more than 50 ms: killing it")));
}

TEST_F(stop_watch_test, leaves_who_goes_on_between_two_looks) {
    run([](int look) { return look % 2 == 0 ? std::vector{1} : std::vector<int>(); }, 6);
    EXPECT_THAT(killed, testing::IsEmpty());
}

TEST_F(stop_watch_test, names_who_is_in_the_same_uninterruptible_wait_and_kills_nobody_for_it) {
    blocked = {{1, {77, "nfs_wait_bit_killable"}}};
    run([](int) { return std::vector<int>(); }, 6);
    EXPECT_THAT(killed, testing::IsEmpty());
    EXPECT_THAT(said, testing::ElementsAre(testing::HasSubstr(
                          "rank 1 on node1 has been in an uninterruptible wait in nfs_wait_bit_killable for more than 50 ms")));
}

TEST_F(stop_watch_test, does_not_look_at_who_has_ended) {
    known.ranks[1].now = rank_evidence::state::gone;
    run([](int) { return std::vector<int>(); }, 1);
    EXPECT_THAT(looked_at, testing::ElementsAre(0, 2));
}

TEST(stop_looks, a_late_look_counts_as_the_first_one) {
    stop_looks looks{.pause_s = 5, .due_s = 5};
    auto const look = [&](double now_s, std::vector<int> const& stopped) {
        begin_look(looks, now_s);
        plan_look(looks, now_s);
        return end_look(looks, {stopped}).stopped;
    };
    EXPECT_THAT(look(5, {1, 2}), testing::IsEmpty());
    EXPECT_THAT(look(16, {1, 2}), testing::IsEmpty());
    EXPECT_THAT(look(21, {2, 3}), testing::ElementsAre(2));
}

TEST(stop_looks, another_wait_is_another_one) {
    stop_looks looks;
    auto const look = [&](std::uint64_t wait) { return end_look(looks, {{}, {{3, {wait, "fsync"}}}}).blocked.size(); };
    EXPECT_EQ(look(1), 0u);
    EXPECT_EQ(look(2), 0u) << "it has gone on";
    EXPECT_EQ(look(2), 1u);
    EXPECT_EQ(look(2), 0u) << "it is named once";
    EXPECT_EQ(look(3), 0u);
    EXPECT_EQ(look(3), 1u);
}

}  // namespace
}  // namespace muster
