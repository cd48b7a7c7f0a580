#include "launch/system/session_dir.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

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

TEST(session_dirs, are_marked_as_such) {
    unique_fd lock;
    auto const path = make_session_dir(lock);
    EXPECT_TRUE(fs::is_regular_file(path + "/muster-session"));
    remove_session_dir(path);
}

}  // namespace
}  // namespace muster
