#include "base/process/files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace muster {
namespace {

TEST(read_text_file, is_empty_where_nothing_can_be_read) {
    EXPECT_EQ(read_text_file("/no/such/file"), "");
    EXPECT_EQ(read_text_file("/"), "") << "opened, but not read: as a file of a process that has ended";
    EXPECT_EQ(read_text_file("/dev/null"), "");
    EXPECT_NE(read_text_file("/proc/self/stat"), "");
}

// Of another user's folder: neither does this process wait in open() nor read without end.
TEST(read_text_file, takes_regular_files_of_a_bounded_size) {
    namespace fs = std::filesystem;
    std::string folder = (fs::temp_directory_path() / "muster-text-XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    ASSERT_EQ(::mkfifo((folder + "/pipe").c_str(), 0600), 0);
    fs::create_symlink("/dev/zero", folder + "/zero");
    std::ofstream(folder + "/sparse").put('x');
    fs::resize_file(folder + "/sparse", std::uintmax_t{1} << 40);
    std::ofstream(folder + "/text") << "four";
    fs::create_symlink("text", folder + "/link");
    for (auto const name : {"/pipe", "/zero", "/sparse"}) EXPECT_EQ(read_text_file(folder + name), "") << name;
    EXPECT_EQ(read_text_file(folder + "/link"), "four");
    EXPECT_EQ(read_text_file(folder + "/text", 4), "four");
    EXPECT_EQ(read_text_file(folder + "/text", 3), "");
    fs::remove_all(folder);
}

}  // namespace
}  // namespace muster
