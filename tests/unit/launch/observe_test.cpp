// Tests of what is seen of ranks from outside: memory, processes, notices of MPI.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <map>

#include <string>

#include "base/process/kernel_files.hpp"
#include "base/unique_fd.hpp"
#include "launch/observe/memory_kills.hpp"
#include "launch/observe/mpi_use.hpp"
#include "launch/observe/process_sight.hpp"
#include "launch/observe/working_process.hpp"
#include "launch/system/cgroup.hpp"

namespace muster {
namespace {

TEST(cpu_quota, is_the_least_of_the_cgroup_and_those_above_it) {
    std::map<std::string, std::string> files;
    auto const read = [&](std::string const& path) { return files[path]; };
    auto const second =
        find_cgroup("0::/kubepods/pod1/c\n", "35 25 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "cpu").value();
    EXPECT_EQ(second.folder, "/sys/fs/cgroup/kubepods/pod1/c");
    EXPECT_EQ(find_cpu_quota(second, read), std::nullopt);
    files["/sys/fs/cgroup/kubepods/pod1/c/cpu.max"] = "max 100000\n";
    files["/sys/fs/cgroup/kubepods/pod1/cpu.max"] = "250000 100000\n";
    files["/sys/fs/cgroup/cpu.max"] = "800000 100000\n";
    EXPECT_EQ(find_cpu_quota(second, read), 3) << "2.5 CPUs";
    files["/sys/fs/cgroup/kubepods/pod1/c/cpu.max"] = "10000 100000\n";
    EXPECT_EQ(find_cpu_quota(second, read), 1);
    auto const first = find_cgroup("4:cpu,cpuacct:/docker/x\n0::/\n",
                                   "40 25 0:30 /docker/x /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n", "cpu")
                           .value();
    EXPECT_EQ(first.folder, "/sys/fs/cgroup/cpu,cpuacct");
    files["/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us"] = "-1\n";
    files["/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us"] = "100000\n";
    EXPECT_EQ(find_cpu_quota(first, read), std::nullopt);
    files["/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us"] = "400000\n";
    EXPECT_EQ(find_cpu_quota(first, read), 4);
}

TEST(cgroup, both_versions_may_tell_that_a_process_is_frozen) {
    std::string const cgroups = "6:freezer:/job\n5:devices:/\n0::/user/rank\n";
    std::string const mounts =
        "37 31 0:34 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
        "41 31 0:38 /user /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    EXPECT_EQ(freezer_files(cgroups, mounts), (std::vector<std::string>{"/sys/fs/cgroup/freezer/job/freezer.state",
                                                                        "/sys/fs/cgroup/unified/rank/cgroup.events"}));
    EXPECT_EQ(freezer_files(cgroups, "").size(), 0u);
    EXPECT_EQ(freezer_files("", mounts).size(), 0u);
    EXPECT_TRUE(says_frozen("populated 1\nfrozen 1\n"));
    EXPECT_TRUE(says_frozen("FROZEN\n"));
    for (auto const* const text : {"populated 1\nfrozen 0\n", "THAWED\n", "FREEZING\n", ""})
        EXPECT_FALSE(says_frozen(text)) << text;
}

TEST(memory_kills, the_counting_file_is_found_in_both_versions_of_cgroups) {
    std::string const first = "9:name=systemd:/\n4:cpu,memory:/slurm/job_7/step_0\n0::/\n";
    std::string const mounts1 =
        "30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "31 25 0:27 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n";
    EXPECT_EQ(find_memory_events(first, mounts1), "/sys/fs/cgroup/memory/slurm/job_7/step_0/memory.oom_control");
    std::string const mounts2 = "31 25 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
    EXPECT_EQ(find_memory_events("0::/user.slice/a:b\n", mounts2), "/sys/fs/cgroup/user.slice/a:b/memory.events");
    EXPECT_EQ(find_memory_events("0::/\n", mounts2), "/sys/fs/cgroup/memory.events");
    std::string const mounts3 = "31 25 0:27 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    EXPECT_EQ(find_memory_events("0::/docker/x/job\n", mounts3), "/sys/fs/cgroup/job/memory.events");
    EXPECT_EQ(find_memory_events("0::/\n", ""), "");
    EXPECT_EQ(find_memory_events("", mounts2), "");
}

TEST(memory_kills, a_count_is_the_number_behind_its_name) {
    EXPECT_EQ(count_in("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "oom_kill"), 3u);
    EXPECT_EQ(count_in("low 0\noom 5\noom_group_kill 1\n", "oom_kill"), std::nullopt);
}

TEST(memory_kills, a_limit_is_that_of_the_cgroup_or_of_one_above) {
    std::map<std::string, std::string> files{
        {"/cg/memory.max", ""}, {"/cg/a/memory.max", "max\n"}, {"/cg/a/b/memory.max", "max\n"}};
    auto const read = [&](std::string const& path) { return files[path]; };
    EXPECT_FALSE(has_memory_limit({"/cg", "/cg/a/b", false}, read));
    files["/cg/a/memory.max"] = "1073741824\n";
    EXPECT_TRUE(has_memory_limit({"/cg", "/cg/a/b", false}, read));
    EXPECT_TRUE(has_memory_limit({"/other", "/other/a", false}, read)) << "nothing is known";
    std::map<std::string, std::string> first{{"/m/memory.limit_in_bytes", "9223372036854771712"},
                                             {"/m/a/memory.limit_in_bytes", "9223372036854771712"}};
    auto const read_first = [&](std::string const& path) { return first[path]; };
    EXPECT_FALSE(has_memory_limit({"/m", "/m/a", true}, read_first));
    first["/m/a/memory.limit_in_bytes"] = "4096";
    EXPECT_TRUE(has_memory_limit({"/m", "/m/a", true}, read_first));
}

TEST(memory_kills, a_full_cgroup_is_counted_there_or_above) {
    std::map<std::string, std::string> files{{"/cg/memory.events", "oom 1\noom_kill 3\n"},
                                             {"/cg/a/memory.events", "low 0\noom 2\noom_kill 2\noom_group_kill 0\n"}};
    auto const read = [&](std::string const& path) { return files[path]; };
    EXPECT_EQ(count_limit_hits({"/cg", "/cg/a/b", false}, read), 3);
    EXPECT_EQ(count_limit_hits({"/other", "/other/a", false}, read), std::nullopt);
    EXPECT_FALSE(has_hidden_cgroups({"/cg", "/cg/a", false}, read));
    files["/cg/memory.max"] = "max\n";
    EXPECT_TRUE(has_hidden_cgroups({"/cg", "/cg/a", false}, read)) << "the root of a container has a limit";
    std::map<std::string, std::string> first{{"/m/memory.failcnt", "0\n"}, {"/m/a/memory.failcnt", "12\n"}};
    auto const read_first = [&](std::string const& path) { return first[path]; };
    EXPECT_EQ(count_limit_hits({"/m", "/m/a", true}, read_first), 12);
    EXPECT_TRUE(has_hidden_cgroups({"/m", "/m/a", true}, read_first));
    first["/m/cgroup.sane_behavior"] = "0\n";
    EXPECT_FALSE(has_hidden_cgroups({"/m", "/m/a", true}, read_first));
}

TEST(memory_kills, the_cgroup_tells_more_than_the_node) {
    EXPECT_EQ(compare({1, 4, false, 7}, {2, 5, false, 8}), memory_verdict::in_cgroup) << "its limit was reached";
    EXPECT_EQ(compare({1, 4, false, 7}, {2, 5, false, 7}), memory_verdict::on_node)
        << "it has a limit, and was not full: the machine was";
    EXPECT_EQ(compare({1, 4, false, 7, true}, {2, 5, false, 7, true}), memory_verdict::either)
        << "one that cannot be seen may have been full";
    EXPECT_EQ(compare({1, 4, true, 0, true}, {2, 5, true, 0, true}), memory_verdict::either) << "the same, of a pod";
    EXPECT_EQ(compare({1, 4}, {2, 5}), memory_verdict::either) << "nothing says how often it was full";
    EXPECT_EQ(compare({1, 4}, {1, 5}), memory_verdict::on_node);
    EXPECT_EQ(compare({1, 4, true}, {2, 5, true}), memory_verdict::on_node) << "a cgroup without a limit is never full";
    EXPECT_EQ(compare({std::nullopt, 4}, {std::nullopt, 5}), memory_verdict::on_node);
    EXPECT_EQ(compare({1, 4}, {1, 4}), memory_verdict::none);
    EXPECT_EQ(compare({}, {}), memory_verdict::unknown);
}

TEST(abort_notice, rank_and_code_are_read) {
    EXPECT_EQ(find_abort_notice("x\napplication called MPI_Abort(MPI_COMM_WORLD, 42) - process 5\n"), (abort_notice{5, 42}));
    EXPECT_EQ(find_abort_notice("MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\nwith errorcode 7.\n"),
              (abort_notice{3, 7}));
    EXPECT_EQ(find_abort_notice("application called MPI_Abort(comm=0x84000002, 1) - process 0"), std::nullopt);
    EXPECT_EQ(find_abort_notice("x\nAbort(269109766) on node 1 (rank 0 in comm 0): Fatal error in internal_Send: Invalid rank\n"),
              (abort_notice{1, 269109766}));
    EXPECT_EQ(find_abort_notice("I Abort(1) on node 2 (rank 0 in comm 0): x"), std::nullopt);
    EXPECT_EQ(find_abort_notice("Abort(1) on node 2: x"), std::nullopt);
    EXPECT_EQ(find_abort_notice("MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD"), std::nullopt);
    EXPECT_EQ(find_abort_notice("I called MPI_Abort"), std::nullopt);
    EXPECT_EQ(
        find_abort_notice("MPI_ABORT was invoked on rank 3 in communicator MPI COMMUNICATOR 4 DUP FROM 0\nwith errorcode 7.\n"),
        std::nullopt);
    EXPECT_EQ(find_abort_notice("Abort(1)\nrank 0 runs ) on node 2 (rank 0 in comm 0): x"), std::nullopt) << "two lines";
    EXPECT_EQ(find_abort_notice("Abort(-3) on node 4 (rank 4 in comm 0): x"), (abort_notice{4, -3}));
}

TEST(process_sight, calls_have_their_names) {
    EXPECT_EQ(name_of_call(std::to_string(SYS_futex) + " 0x7f 0x80 0x0"), "futex");
    EXPECT_EQ(name_of_call("running\n"), "");
    EXPECT_EQ(name_of_call("999999 0x0"), "");
    EXPECT_EQ(name_of_call(""), "");
}

TEST(process_sight, sockets_of_a_port_are_connected_to_it_or_listen_there) {
    // Port 29500 is 733C.
    std::string const tcp =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 00000000:733C 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 101 1 f 100 0 0 10 0\n"
        "   1: 0100007F:9C40 0100007F:733C 01 00000000:00000000 00:00000000 00000000     0        0 102 1 f 20 4 30 10 -1\n"
        "   2: 0100007F:733C 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 103 1 f 20 4 30 10 -1\n"
        "   3: 0100007F:9C41 0100007F:733C 02 00000000:00000000 00:00000000 00000000     0        0 104 1 f 20 4 30 10 -1\n";
    EXPECT_EQ(sockets_at_port(tcp, 29500), (std::vector<unsigned long>{101, 102}));
    EXPECT_EQ(sockets_at_port(tcp, 29501), (std::vector<unsigned long>{}));
}

TEST(process_sight, connections_are_read_once) {
    unique_fd const socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof here;
    auto* const address = reinterpret_cast<sockaddr*>(&here);
    ASSERT_EQ(::bind(socket.get(), address, size), 0);
    ASSERT_EQ(::getsockname(socket.get(), address, &size), 0);
    int const port = ntohs(here.sin_port);
    process_table const table;
    EXPECT_FALSE(table.inspect(::getpid(), port).at_port);
    ASSERT_EQ(::listen(socket.get(), 1), 0);
    EXPECT_TRUE(process_table().inspect(::getpid(), port).at_port);
    EXPECT_FALSE(table.inspect(::getpid(), port).at_port) << "as they were: for many ranks they are not read again";
}

TEST(process_sight, this_process_is_seen) {
    auto const sight = process_table().inspect(::getpid(), 0);
    EXPECT_EQ(sight.pid, ::getpid());
    EXPECT_EQ(describe_state(sight), "running");
    EXPECT_EQ(process_table().inspect(-5, 0).pid, 0);
}

TEST(process_sight, one_that_has_been_killed_is_leaving) {
    EXPECT_FALSE(process_table().inspect(::getpid(), 0).leaving);
    auto const child = ::fork();
    if (child == 0) ::_exit(0);
    siginfo_t ended{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
    EXPECT_TRUE(process_table().inspect(child, 0).leaving);
    ::waitpid(child, nullptr, 0);
}

/// A rank that is this script, which has written a line.
class script_rank {
  public:
    explicit script_rank(char const* script) {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
        pid_ = ::fork();
        if (pid_ == 0) {
            ::setpgid(0, 0);
            ::dup2(ends[1], STDOUT_FILENO);
            ::execl("/bin/sh", "sh", "-c", script, nullptr);
            ::_exit(127);
        }
        ::close(ends[1]);
        char line = 0;
        EXPECT_EQ(::read(ends[0], &line, 1), 1);
        ::close(ends[0]);
    }
    script_rank(script_rank const&) = delete;
    script_rank& operator=(script_rank const&) = delete;
    ~script_rank() {
        if (pid_ <= 0) return;
        ::kill(-pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    pid_t pid() const { return pid_; }

  private:
    pid_t pid_ = -1;
};

/// Its script has written, and is about to stop itself or to wait.
bool is_soon_stopped(pid_t rank) {
    auto const limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < limit) {
        if (brief_look().is_stopped(rank)) return true;
        ::usleep(1000);
    }
    return false;
}

TEST(brief_look, a_stopped_child_is_not_the_rank) {
    script_rank const rank("sleep 100 & kill -STOP $!; sleep 100 & echo; wait");
    EXPECT_FALSE(brief_look().is_stopped(rank.pid()));
    EXPECT_EQ(brief_look().working_process(rank.pid()), rank.pid()) << "it has two children";
}

TEST(brief_look, a_stopped_rank_is_one) {
    script_rank const rank("echo; kill -STOP $$");
    EXPECT_TRUE(is_soon_stopped(rank.pid()));
    EXPECT_EQ(brief_look().working_process(rank.pid()), rank.pid());
}

TEST(brief_look, the_child_that_a_script_waits_for_is_the_rank) {
    script_rank const rank("sh -c 'echo; kill -STOP $$; :'; :");
    EXPECT_TRUE(is_soon_stopped(rank.pid()));
    auto const child = brief_look().working_process(rank.pid());
    EXPECT_NE(child, rank.pid());
    EXPECT_EQ(process_table().inspect(rank.pid(), 0).pid, child) << "a full look finds the same";
    EXPECT_EQ(process_table().inspect(rank.pid(), 0).state, 'T');
}

TEST(process_sight, states_are_words) {
    EXPECT_EQ(describe_state({.state = 'S', .where = "futex"}), "asleep in futex");
    EXPECT_EQ(describe_state({.state = 'S'}), "asleep");
    EXPECT_EQ(describe_state({.state = 'D', .where = "nfs_wait"}), "in an uninterruptible wait in nfs_wait");
    EXPECT_EQ(describe_state({.state = 'T'}), "stopped");
}

TEST(process_sight, the_last_line_and_a_traceback_are_found) {
    process_sight sight;
    add_output(sight, "Traceback (most recent call last):\n  File \"a.py\"\nZeroDivisionError: division by zero\n", 3);
    EXPECT_TRUE(sight.traceback);
    EXPECT_EQ(sight.last_line, "ZeroDivisionError: division by zero");
    add_output(sight, "", -1);
    EXPECT_FALSE(sight.traceback);
    EXPECT_EQ(sight.last_line, "");
}

}  // namespace
}  // namespace muster
