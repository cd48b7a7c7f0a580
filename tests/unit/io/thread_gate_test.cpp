// The gate for threads that copy: as many as there are processors, and more while their reads wait.
#include "io/tree/workers.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>
#include <vector>

namespace muster {
namespace {

/// A read that waits for the source, and one that is answered from memory.
void stay_waiting(thread_gate& gate) {
    thread_gate::stay stay(gate);
    wait_share::watch const watch(&stay.reading);
    ::poll(nullptr, 0, 20);
}
void stay_working(thread_gate& gate) {
    thread_gate::stay const stay(gate);
}

TEST(thread_gate, lets_in_more_while_reads_wait_and_fewer_again_when_they_do_not) {
    thread_gate gate(2, 10);
    EXPECT_EQ(gate.allowed(), 2);
    stay_waiting(gate);
    EXPECT_EQ(gate.allowed(), 4);
    stay_waiting(gate);
    stay_waiting(gate);
    EXPECT_EQ(gate.allowed(), 10) << "no more than there are threads";
    for (int i = 0; i < 20; ++i) stay_working(gate);
    EXPECT_EQ(gate.allowed(), 2) << "no fewer than there are processors";
}

TEST(thread_gate, never_asks_for_more_threads_than_there_are) {
    EXPECT_EQ(thread_gate(8, 1).allowed(), 1);
    EXPECT_EQ(thread_gate(0, 4).allowed(), 1);
}

TEST(thread_gate, no_more_are_inside_than_are_allowed) {
    thread_gate gate(2, 2);
    std::atomic<int> inside{0}, most{0};
    std::vector<std::jthread> threads;
    for (int t = 0; t < 6; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 200; ++i) {
                thread_gate::stay const stay(gate);
                int const now = ++inside;
                for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
                }
                std::this_thread::yield();
                --inside;
            }
        });
    threads.clear();
    EXPECT_LE(most, 2);
    EXPECT_GE(most, 1);
}

}  // namespace
}  // namespace muster
