#include "launch/system/open_files.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>

namespace muster {
namespace {

/// How many descriptors the kernel's table of this process has room for.
std::size_t table_size() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
        if (std::size_t size = 0; word == "FDSize:" && status >> size) return size;
    return 0;
}

/// In a process of its own, whose table is as small as its open files allow.
bool holds_in_child(std::function<bool()> const& question) {
    pid_t const child = ::fork();
    if (child == 0) ::_exit(question() ? 0 : 1);
    int status = -1;
    return ::waitpid(child, &status, 0) == child && status == 0;
}

TEST(make_room_for_open_files, grows_the_table_and_keeps_the_limit) {
    EXPECT_TRUE(holds_in_child([] {
        rlimit low{};
        ::getrlimit(RLIMIT_NOFILE, &low);
        low.rlim_cur = 100;
        ::setrlimit(RLIMIT_NOFILE, &low);
        if (table_size() >= 512) return false;
        make_room_for_open_files(1000);
        rlimit now{};
        ::getrlimit(RLIMIT_NOFILE, &now);
        return table_size() >= 1000 && now.rlim_cur == 100 && now.rlim_max == low.rlim_max;
    }));
}

TEST(make_room_for_open_files, stays_below_the_hard_limit) {
    EXPECT_TRUE(holds_in_child([] {
        rlimit const hard{300, 300};
        ::setrlimit(RLIMIT_NOFILE, &hard);
        make_room_for_open_files(100000);
        return table_size() >= 300 && table_size() < 100000;
    }));
}

TEST(make_room_for_open_files, works_where_standard_descriptors_are_closed) {
    EXPECT_TRUE(holds_in_child([] {
        ::close(STDIN_FILENO);
        make_room_for_open_files(1000);
        return table_size() >= 1000;
    }));
}

}  // namespace
}  // namespace muster
