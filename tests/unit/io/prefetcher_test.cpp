#include "io/loader/prefetcher.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace muster {
namespace {

TEST(prefetcher, delivers_items_in_order_each_in_its_slot) {
    for (std::size_t const slots : {2u, 3u, 8u}) {
        std::vector<std::size_t> held(slots, 0);
        prefetcher ahead(slots, [&](std::size_t item, std::size_t slot) { held[slot] = item * 3; });
        for (int run = 0; run < 3; ++run) {
            ahead.abandon();
            ahead.start(500);
            for (std::size_t item = 0; item < 500; ++item) {
                auto const slot = ahead.next();
                ASSERT_TRUE(slot);
                ASSERT_EQ(*slot, item % slots);
                ASSERT_EQ(held[*slot], item * 3);
            }
            ASSERT_FALSE(ahead.next());
            ASSERT_FALSE(ahead.next()) << "and still not";
        }
    }
}

TEST(prefetcher, several_threads_prepare_at_once_and_the_order_stays) {
    std::vector<std::size_t> held(4, 0);
    std::atomic<int> within{0};
    prefetcher ahead(
        4,
        [&](std::size_t item, std::size_t slot) {
            ++within;
            // The first waits until another one is being prepared beside it.
            while (item == 0 && within < 2) std::this_thread::yield();
            held[slot] = item;
        },
        3);
    for (int run = 0; run < 3; ++run) {
        within = 0;
        ahead.start(300);
        for (std::size_t item = 0; item < 300; ++item) {
            auto const slot = ahead.next();
            ASSERT_TRUE(slot);
            ASSERT_EQ(held[*slot], item);
        }
        ASSERT_FALSE(ahead.next());
    }
}

TEST(prefetcher, of_several_failures_the_first_is_told_after_what_came_before_it) {
    struct leaving {
        std::atomic<bool>& has_left;
        ~leaving() { has_left = true; }
    };
    std::atomic<std::size_t> earlier{5};  // of items 5 and 6 the one that fails first
    std::atomic<bool> has_left{false};
    std::atomic<int> failing{0};
    prefetcher ahead(
        8,
        [&](std::size_t item, std::size_t) {
            if (item < 5) return;
            ++failing;
            while (failing < 2) std::this_thread::yield();  // both have begun
            if (item != earlier) {
                while (!has_left) std::this_thread::yield();
                for (int i = 0; i < 200; ++i) std::this_thread::yield();  // what has left is told in a few instructions
                throw std::runtime_error(std::to_string(item));
            }
            leaving const guard{has_left};
            throw std::runtime_error(std::to_string(item));
        },
        2);
    for (int run = 0; run < 4; ++run) {
        earlier = run % 2 == 0 ? 5 : 6;
        has_left = false;
        failing = 0;
        ahead.start(100);
        for (int i = 0; i < 5; ++i) ASSERT_TRUE(ahead.next());
        try {
            ahead.next();
            ADD_FAILURE() << "item 5 failed";
        } catch (std::runtime_error const& problem) {
            EXPECT_STREQ(problem.what(), "5");
        }
        EXPECT_FALSE(ahead.next());
    }
}

TEST(prefetcher, never_overwrites_the_slot_in_use) {
    std::vector<std::size_t> held(2, 0);
    std::atomic<std::size_t> prepared{0};
    prefetcher ahead(2, [&](std::size_t item, std::size_t slot) {
        held[slot] = item;
        prepared = item + 1;
    });
    ahead.start(100);
    for (std::size_t item = 0; item < 100; ++item) {
        auto const slot = ahead.next();
        ASSERT_EQ(held[*slot], item);
        ASSERT_LE(prepared.load(), item + 2);
        ASSERT_EQ(held[*slot], item);
    }
}

TEST(prefetcher, an_abandoned_run_touches_nothing_more) {
    std::vector<int> target(4, 0);
    int value = 1;
    prefetcher ahead(4, [&](std::size_t, std::size_t slot) { target[slot] = value; });
    for (int run = 0; run < 200; ++run) {
        ahead.start(1000);
        for (int i = 0; i < run % 5; ++i) ASSERT_TRUE(ahead.next());
        ahead.abandon();
        value = run;  // a race, if work still ran: ThreadSanitizer would tell
    }
    EXPECT_FALSE(ahead.next()) << "nothing is left of it";
}

TEST(prefetcher, an_exception_reaches_the_consumer_after_what_was_ready) {
    prefetcher ahead(3, [](std::size_t item, std::size_t) {
        if (item == 7) throw std::runtime_error("item 7");
    });
    for (int run = 0; run < 2; ++run) {
        ahead.start(20);
        for (int i = 0; i < 7; ++i) ASSERT_TRUE(ahead.next());
        EXPECT_THROW(ahead.next(), std::runtime_error);
        EXPECT_FALSE(ahead.next()) << "told once, then the run is over";
    }
}

TEST(prefetcher, ends_cleanly_at_any_moment) {
    for (int taken = 0; taken < 6; ++taken) {
        prefetcher ahead(3, [](std::size_t, std::size_t) {});
        if (taken > 0) ahead.start(5);
        for (int i = 1; i < taken; ++i) ASSERT_TRUE(ahead.next());
    }
    prefetcher none(2, [](std::size_t, std::size_t) { FAIL(); });
    none.start(0);
    EXPECT_FALSE(none.next());
}

}  // namespace
}  // namespace muster
