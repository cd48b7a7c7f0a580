#include "launch/samples/side_work.hpp"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>

namespace muster {
namespace {

TEST(side_work, tells_the_loop_of_each_end) {
    event_loop loop;
    int done = 0, ended = 0;
    side_work work(loop, "for a test", 0, [&] {
        if (++ended == 2) loop.stop();
        work.begin([&done] { ++done; });
    });
    work.begin([&done] {
        ++done;
        throw std::runtime_error("counts as done");
    });
    EXPECT_TRUE(work.is_busy());
    work.begin([&done] { done += 100; });  // other work goes on
    loop.run();
    EXPECT_TRUE(work.wait_until(event_loop::clock::now() + std::chrono::seconds(30)));
    EXPECT_EQ(done, 3);
    EXPECT_FALSE(work.is_busy());
    EXPECT_EQ(work.busy_for(), duration(0));
}

TEST(side_work, rests_for_the_longer_the_more_it_takes) {
    event_loop loop;
    side_work work(loop, "for a test", 1e9, [&] { loop.stop(); });
    work.begin([] {});
    loop.run();
    EXPECT_TRUE(work.is_busy());
    EXPECT_EQ(work.busy_for(), duration(0));
}

TEST(side_work, goes_on_without_its_owner) {
    std::promise<void> go, ended;
    {
        event_loop loop;
        side_work work(loop, "for a test", 0, [] {});
        work.begin([may = go.get_future().share(), &ended] {
            may.wait();
            ended.set_value();
        });
        EXPECT_FALSE(work.wait_until({}));
        EXPECT_GT(work.busy_for(), duration(0));
    }
    go.set_value();
    ended.get_future().wait();
}

}  // namespace
}  // namespace muster
