#include "bench/tools/watched_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/process/process.hpp"
#include "bench/tools/crowd.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct heard {
    std::string text;
    watched_result result;
};

heard run(std::string const& script, duration limit = duration(0),
          std::function<void(std::string const&)> const& at_output = {}) {
    stop_signals signals;
    heard out;
    out.result = run_watched(
        {"sh", "-c", script}, environment::capture(), signals, limit,
        [&](std::string_view text) {
            out.text += text;
            if (at_output) at_output(out.text);
        },
        std::chrono::seconds(60));
    return out;
}

TEST(run_watched, hears_both_streams_and_tells_how_it_ended) {
    auto const out = run("echo a; echo b >&2; read x || echo none; exit 3");
    EXPECT_EQ(out.text, "a\nb\nnone\n");
    EXPECT_EQ(out.result.exit_code, 3);
    EXPECT_FALSE(out.result.stopped);
    EXPECT_EQ(run("kill -9 $$").result.exit_code, 128 + SIGKILL);
    EXPECT_THROW(
        {
            stop_signals signals;
            run_watched({"/no/such"}, environment::capture(), signals, duration(0), [](auto) {});
        },
        program_error);
}

TEST(run_watched, kills_at_the_limit) {
    auto const out = run("echo begun; sleep 600", duration(0.2));
    EXPECT_TRUE(out.result.killed_at_limit);
    EXPECT_EQ(out.result.exit_code, 128 + SIGKILL);
}

TEST(run_watched, hands_a_signal_on_and_waits) {
    bool sent = false;
    auto const out =
        run("trap 'echo cleaned; exit 7' INT; echo ready; while :; do sleep 0.02; done", duration(0), [&](auto const& text) {
            if (sent || text.find("ready") == std::string::npos) return;
            sent = true;
            ::kill(::getpid(), SIGINT);
        });
    EXPECT_EQ(out.result.stopped, SIGINT);
    EXPECT_EQ(out.result.exit_code, 7);
    EXPECT_THAT(out.text, HasSubstr("cleaned"));
}

TEST(stop_signals, are_kept_until_they_are_asked_for) {
    stop_signals signals;
    EXPECT_FALSE(signals.came());
    ::kill(::getpid(), SIGTERM);
    EXPECT_EQ(signals.came(), SIGTERM);
    ::kill(::getpid(), SIGINT);
    EXPECT_EQ(signals.came(), SIGTERM) << "the first counts";
}

TEST(read_process_work, of_names_with_anything_in_them) {
    auto const work = read_process_work(
        "17 (a) b) R 1 1 1 0 -1 4194304 1 2 3 4 55 66 0 0 20 0 1 0 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 17 3 0\n");
    ASSERT_TRUE(work);
    EXPECT_EQ(work->name, "a) b");
    EXPECT_EQ(work->ticks, 121);
    EXPECT_EQ(work->cpu, 3);
    for (auto const* text : {"", "17 (a", "17 (a) R 1", ")("}) EXPECT_FALSE(read_process_work(text)) << text;
}

TEST(busiest_of, counts_only_the_work_between_both_looks) {
    std::map<int, process_work> const before{{1, {"moved", 5000, 1}}, {2, {"left", 100, 0}}, {3, {"idle", 900, 0}}};
    std::map<int, process_work> const after{
        {1, {"moved", 5010, 0}}, {2, {"left", 150, 1}}, {3, {"idle", 901, 0}}, {4, {"new", 20, 0}}};
    EXPECT_THAT(busiest_of(before, after, cpuset::from_list("0"), 0.25, 100),
                ElementsAre(busy_process{"new", 4, 0.8}, busy_process{"moved", 1, 0.4}));
}

TEST(machine_load, is_crowded_beyond_a_tenth) {
    machine_load load;
    load.cpus = 2;
    load.before = 0.25;
    EXPECT_FALSE(load.crowded());
    load.before = 0.3;
    EXPECT_TRUE(load.crowded_before());
    load.cpus = 128;
    EXPECT_FALSE(load.crowded()) << "0.3 of 128";
    load.during = 13;
    EXPECT_TRUE(load.crowded());
    EXPECT_FALSE(load.crowded_before());
    load.average = 8.9;
    load.busiest = {{"cc1plus", 17, 0.98}, {"x\033y", 18, 0.5}};
    EXPECT_EQ(crowd_text(load), "other programs used 13.0 of 128 CPUs (cc1plus 0.98, x\\x1by 0.50; load average 8.9)");
}

TEST(crowd_watch, of_ranks_elsewhere_tells_nothing_of_the_run) {
    stop_signals signals;
    std::optional<machine_load> seen;
    run_watched({"sh", "-c", "echo go; while :; do :; done"}, environment::capture(), signals, duration(0), [&](auto) {
        if (seen) return;
        seen = crowd_watch().load(false);
        ::kill(::getpid(), SIGTERM);
    });
    ASSERT_TRUE(seen);
    EXPECT_FALSE(seen->during) << "not all that is measured is here";
    EXPECT_GE(seen->cpus, 1);
}

}  // namespace
}  // namespace muster
