#include "comm/backend/late_ranks.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace muster {
namespace {

TEST(describe_late, names_rank_host_and_reason_of_each) {
    std::array<std::string, 3> const hosts{"n0", "n1", "n2"};
    std::array<late_rank, 2> const late{late_rank{0, true, "process 4 is gone"}, late_rank{2, false, "process 7 is stopped"}};
    EXPECT_EQ(describe_late(late, hosts), "rank 0 on n0 (process 4 is gone), rank 2 on n2 (process 7 is stopped)");
    EXPECT_EQ(describe_late({}, hosts), "");
    EXPECT_EQ(ranks_of(late), (std::vector<int>{0, 2}));
}

TEST(lost_ranks, are_those_whose_processes_are_gone_but_not_the_own) {
    pid_t const child = ::fork();
    if (child == 0) ::_exit(0);
    process_name gone = this_process();
    gone.pid = child;
    ::waitpid(child, nullptr, 0);
    std::array<process_name, 3> const processes{this_process(), gone, gone};
    auto const lost = lost_ranks(processes, 1);
    ASSERT_EQ(lost.size(), 1u);
    EXPECT_EQ(lost[0].rank, 2);
    EXPECT_TRUE(lost[0].dead);
}

}  // namespace
}  // namespace muster
