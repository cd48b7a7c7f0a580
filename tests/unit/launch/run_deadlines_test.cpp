#include "launch/watch/run_deadlines.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <vector>

namespace muster {
namespace {

/// What a run would be told, and when it stops.
struct recorded_run {
    event_loop loop;
    run_options options;
    bool active = true;
    duration age{0};  ///< of the generations before
    std::vector<std::string> expired;
    std::vector<std::pair<std::string, int>> warned;

    run_deadlines make(std::optional<std::chrono::system_clock::time_point> ends_at = {}) {
        return {loop,
                options,
                ends_at,
                age,
                {[this] { return active; }, [] { return std::size_t{1}; },
                 [this](std::string const& reason) {
                     expired.push_back(reason);
                     active = false;
                 },
                 [this](std::string const& note, int number) { warned.emplace_back(note, number); }}};
    }
    void run_for(double seconds) {
        loop.after(duration(seconds), [this] { loop.stop(); });
        loop.run();
    }
};

TEST(run_deadlines, the_generations_before_count_for_the_time_limit) {
    recorded_run run;
    run.options.timeout = duration(1000);
    run.age = duration(1001);
    auto deadlines = run.make();
    deadlines.start();
    run.run_for(0.1);
    EXPECT_EQ(run.expired.size(), 1u);
}

TEST(run_deadlines, a_run_that_takes_too_long_expires) {
    recorded_run run;
    run.options.timeout = duration(0.05);
    auto deadlines = run.make();
    deadlines.start();
    run.run_for(0.3);
    EXPECT_EQ(run.expired, std::vector<std::string>{"still running after --timeout 50 ms: ending 1 rank"});
}

TEST(run_deadlines, a_run_that_is_ending_does_not_expire) {
    recorded_run run;
    run.options.timeout = run.options.idle_timeout = duration(0.05);
    run.options.signal_before_end = early_signal{SIGUSR1, duration(60)};
    run.active = false;
    auto deadlines = run.make(std::chrono::system_clock::now());
    deadlines.start();
    deadlines.start_early_signal();
    run.run_for(0.2);
    EXPECT_TRUE(run.expired.empty());
    EXPECT_TRUE(run.warned.empty());
}

TEST(run_deadlines, output_moves_the_idle_deadline) {
    recorded_run run;
    run.options.idle_timeout = duration(1.0);
    auto deadlines = run.make();
    deadlines.start();
    run.loop.after(duration(0.6), [&] { deadlines.note_output(); });
    run.run_for(1.3);
    EXPECT_TRUE(run.expired.empty());
    run.run_for(1.5);
    ASSERT_EQ(run.expired.size(), 1u);
    EXPECT_NE(run.expired[0].find("(--idle-timeout): ending 1 rank"), std::string::npos);
}

TEST(run_deadlines, the_early_signal_comes_before_the_end) {
    recorded_run run;
    run.options.signal_before_end = early_signal{SIGUSR1, duration(60)};
    auto deadlines = run.make(std::chrono::system_clock::now() + std::chrono::milliseconds(60'100));
    deadlines.start();
    deadlines.start_early_signal();
    run.run_for(0.02);
    EXPECT_TRUE(run.warned.empty());
    run.run_for(0.5);
    ASSERT_EQ(run.warned.size(), 1u);
    EXPECT_EQ(run.warned[0].second, SIGUSR1);
    EXPECT_EQ(run.warned[0].first, "60 s before the job's time is up");
}

TEST(run_deadlines, there_is_no_early_signal_where_the_end_is_unknown) {
    recorded_run run;
    run.options.signal_before_end = early_signal{SIGUSR1, duration(60)};
    auto deadlines = run.make();
    deadlines.start_early_signal();
    run.run_for(0.05);
    EXPECT_TRUE(run.warned.empty());
}

}  // namespace
}  // namespace muster
