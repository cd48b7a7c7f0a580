#include "launch/system/session_dir.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>

namespace muster {
namespace {

namespace fs = std::filesystem;

TEST(session_dirs, are_private_and_go_away_with_all_below) {
    unique_fd lock;
    auto const path = make_session_dir(lock);
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    EXPECT_LT(path.size(), 50u);
    fs::create_directory(path + "/a");
    std::ofstream(path + "/a/file") << "x";
    remove_session_dir(path);
    EXPECT_FALSE(fs::exists(path));
    remove_session_dir(path);
}

TEST(session_dirs, in_use_or_young_are_not_swept) {
    unique_fd lock;
    auto const held = make_session_dir(lock);
    unique_fd second;
    auto const young = make_session_dir(second);
    second.reset();
    sweep_session_dirs();
    EXPECT_TRUE(fs::exists(held));
    EXPECT_TRUE(fs::exists(young)) << "it may be that of a run that is just starting";
    remove_session_dir(held);
    remove_session_dir(young);
}

/// Ends with what `act` returns, as the first process of a space of process numbers of its own; -1 where there can be none.
int in_own_process_space(int (*act)()) {
    pid_t const child = ::fork();
    if (child == 0) {
        if (::unshare(::geteuid() == 0 ? CLONE_NEWPID : CLONE_NEWUSER | CLONE_NEWPID) != 0) ::_exit(99);
        pid_t const first = ::fork();
        if (first == 0) ::_exit(act());
        int status = 0;
        ::waitpid(first, &status, 0);
        ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) != 99 ? WEXITSTATUS(status) : -1;
}

// A container that has the machine's /dev/shm makes its folders there, and may be killed with all in it.
TEST(session_dirs, of_another_space_of_process_numbers_are_swept_once_nobody_holds_them) {
    std::string folder = "/dev/shm/muster-test-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    ASSERT_EQ(::setenv("MUSTER_TEST_FOLDER", folder.c_str(), 1), 0);
    int const made = in_own_process_space([] {
        unique_fd lock;
        auto const path = make_session_dir(lock);
        fs::rename(path, std::string(::getenv("MUSTER_TEST_FOLDER")) + path.substr(path.rfind('/')));
        return 0;
    });
    unique_fd lock;
    auto const held = make_session_dir(lock);
    fs::rename(held, folder + held.substr(held.rfind('/')));
    auto const count = [&] { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); };
    sweep_session_dirs({folder}, 60);
    int const young = static_cast<int>(count());
    sweep_session_dirs({folder}, 0);
    int const old = static_cast<int>(count());
    lock.reset();
    fs::rename(folder + held.substr(held.rfind('/')),
               folder + "/muster-" + std::to_string(::getuid()) + "-4194305-abcdef");  // no process has that number
    sweep_session_dirs({folder}, 0);
    int const last = static_cast<int>(count());
    fs::remove_all(folder);
    if (made < 0) GTEST_SKIP() << "no space of process numbers can be made here";
    EXPECT_EQ(young, 2);
    EXPECT_EQ(old, 1) << "the one that is held stays";
    EXPECT_EQ(last, 0);
}

TEST(shared_memory, of_processes_that_a_container_does_not_see_stays) {
    std::string path = "/dev/shm/nccl-XXXXXX";  // nobody has it open here, as it looks from within a container
    ::close(::mkstemp(path.data()));
    int const removed = in_own_process_space([] { return sweep_shared_memory(std::time(nullptr) - 1); });
    EXPECT_TRUE(fs::exists(path));
    ::unlink(path.c_str());
    if (removed < 0) GTEST_SKIP() << "no space of process numbers can be made here";
    EXPECT_EQ(removed, 0);
}

/// As Python's multiprocessing makes them.
TEST(shared_memory, a_semaphore_in_use_stays) {
    auto const name = fmt::format("/mp-muster-test-{}", ::getpid());
    auto const path = "/dev/shm/sem." + name.substr(1);
    auto* const semaphore = ::sem_open(name.c_str(), O_CREAT | O_EXCL, 0600, 1);
    ASSERT_NE(semaphore, SEM_FAILED);
    static_cast<void>(sweep_shared_memory(std::time(nullptr) - 2));
    EXPECT_TRUE(fs::exists(path));
    ::sem_close(semaphore);
    ::sem_unlink(name.c_str());
}

TEST(session_dirs, are_marked_as_such) {
    unique_fd lock;
    auto const path = make_session_dir(lock);
    EXPECT_TRUE(fs::is_regular_file(path + "/muster-session"));
    remove_session_dir(path);
}

}  // namespace
}  // namespace muster
