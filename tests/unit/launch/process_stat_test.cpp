#include "launch/system/process_stat.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster {
namespace {

/// A child with a name that has what separates the fields; it stays until it is killed.
struct child {
    pid_t pid;
    child() : pid(::fork()) {
        if (pid != 0) return;
        ::prctl(PR_SET_NAME, "a) b 1 2");
        sigset_t one;
        ::sigemptyset(&one);
        ::sigaddset(&one, SIGUSR1);
        ::sigprocmask(SIG_BLOCK, &one, nullptr);
        ::raise(SIGUSR1);  // stays pending
        ::raise(SIGSTOP);
        for (;;) ::pause();
    }
    ~child() {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
    }
};

TEST(process_stat, is_read_past_a_name_with_blanks_and_parentheses) {
    child const one;
    int status = 0;
    ASSERT_EQ(::waitpid(one.pid, &status, WUNTRACED), one.pid);
    auto const stat = read_process_stat(one.pid);
    ASSERT_TRUE(stat);
    EXPECT_EQ(stat->state, 'T');
    EXPECT_EQ(stat->parent, ::getpid());
    EXPECT_GT(stat->start_ticks, 0u);
    EXPECT_EQ(stat->pending, std::uint64_t{1} << (SIGUSR1 - 1));
    EXPECT_TRUE(stat->lives());
    EXPECT_FALSE(stat->is_exiting());
    EXPECT_THAT(list_processes(), testing::Contains(one.pid));
    EXPECT_THAT(living_children()[::getpid()], testing::Contains(one.pid));
}

TEST(process_stat, tells_a_process_that_has_ended) {
    child const one;
    ::kill(one.pid, SIGKILL);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(one.pid), &info, WEXITED | WNOWAIT), 0);
    auto const stat = read_process_stat(one.pid);
    ASSERT_TRUE(stat) << "nobody has waited for it";
    EXPECT_FALSE(stat->lives());
    EXPECT_THAT(living_children()[::getpid()], testing::Not(testing::Contains(one.pid)));
}

TEST(process_stat, of_no_process_is_nothing) {
    EXPECT_FALSE(read_process_stat(0));
    EXPECT_FALSE(read_process_stat(0x7fffffff));
}

}  // namespace
}  // namespace muster
