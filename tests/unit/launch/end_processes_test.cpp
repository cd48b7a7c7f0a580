#include "launch/system/end_processes.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "base/unique_fd.hpp"

namespace muster {
namespace {

TEST(end_processes, what_was_asked_to_end_has_the_rest_of_the_grace) {
    auto const now = event_loop::clock::now();
    EXPECT_EQ(wait_before_kill(SIGTERM, std::nullopt, now), leftover_patience);
    EXPECT_EQ(wait_before_kill(SIGTERM, now + std::chrono::seconds(3), now), duration(3));
    EXPECT_EQ(wait_before_kill(SIGTERM, now - std::chrono::seconds(3), now), leftover_patience);
    EXPECT_EQ(wait_before_kill(SIGKILL, now + std::chrono::seconds(3), now), leftover_patience);
}

TEST(end_processes, an_interrupt_is_followed_by_a_termination) {
    for (int const number : {SIGINT, SIGTERM}) {
        event_loop loop;
        std::vector<std::string> order;
        set_grace_timers(
            loop, number, duration(0.1), [&] { order.emplace_back("terminate"); },
            [&] {
                order.emplace_back("kill");
                loop.stop();
            });
        loop.run();
        EXPECT_EQ(order, number == SIGINT ? (std::vector<std::string>{"terminate", "kill"}) : std::vector<std::string>{"kill"});
    }
}

TEST(end_processes, a_stopped_process_is_told_from_a_sleeping_one) {
    pid_t const child = ::fork();
    if (child == 0) {
        ::raise(SIGSTOP);
        ::pause();
    }
    int status = 0;
    ::waitpid(child, &status, WUNTRACED);
    EXPECT_TRUE(is_stopped(child));
    EXPECT_EQ(parent_of(child), ::getpid());
    ::kill(child, SIGCONT);
    ::waitpid(child, &status, WCONTINUED);
    EXPECT_FALSE(is_stopped(child));
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    EXPECT_FALSE(is_stopped(child));
    EXPECT_EQ(parent_of(child), 0);
}

/// As a number that was read some time ago may be another process' by now.
TEST(end_processes, a_process_of_another_parent_gets_no_signal) {
    auto [read_end, write_end] = make_pipe();
    pid_t const child = ::fork();
    if (child == 0) {
        pid_t const below = ::fork();
        if (below == 0) {
            ::pause();
            ::_exit(0);
        }
        [[maybe_unused]] auto const told = ::write(write_end.get(), &below, sizeof below);
        int status = 0;
        ::waitpid(below, &status, 0);
        ::_exit(WTERMSIG(status));
    }
    pid_t below = 0;
    ASSERT_EQ(::read(read_end.get(), &below, sizeof below), static_cast<ssize_t>(sizeof below));
    signal_child(below, below, SIGKILL);  // it was some other process' child
    EXPECT_TRUE(is_alive(below));
    signal_child(below, child, SIGTERM);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), SIGTERM);
}

TEST(end_processes, a_stopped_child_ends_too) {
    pid_t const child = ::fork();
    if (child == 0) {
        ::raise(SIGSTOP);
        ::pause();
        ::_exit(0);
    }
    ::waitpid(child, nullptr, WUNTRACED);
    end_descendants(SIGTERM);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WTERMSIG(status), SIGTERM);
    EXPECT_TRUE(descendants().empty());
}

}  // namespace
}  // namespace muster
