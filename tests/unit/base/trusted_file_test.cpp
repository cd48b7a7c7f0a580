#include "base/trust/trusted_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr uid_t self = 1234567, other = 1234568;
constexpr gid_t private_group = 77, shared_group = 88;

struct stat made_by(uid_t owner, mode_t mode, gid_t group = shared_group) {
    struct stat found {};
    found.st_uid = owner;
    found.st_gid = group;
    found.st_mode = mode;
    return found;
}

std::string judge(struct stat const& file, struct stat const& folder) {
    return distrust(file, folder, {self, private_group});
}

TEST(distrust, takes_what_only_the_user_or_root_can_have_written) {
    auto const home = made_by(self, S_IFDIR | 0755);
    EXPECT_EQ(judge(made_by(self, S_IFREG | 0644), home), "");
    EXPECT_EQ(judge(made_by(0, S_IFREG | 0644), made_by(0, S_IFDIR | 0755)), "");
    EXPECT_EQ(judge(made_by(self, S_IFREG | 0644), made_by(0, S_IFDIR | 01777)), "") << "/tmp";
    EXPECT_EQ(judge(made_by(self, S_IFREG | 0664, private_group), made_by(self, S_IFDIR | 0775, private_group)), "")
        << "umask 002 with a group a user";
}

TEST(distrust, refuses_what_others_can_have_written) {
    auto const home = made_by(self, S_IFDIR | 0755);
    EXPECT_EQ(judge(made_by(other, S_IFREG | 0644), home), "it belongs to the user with number 1234568");
    EXPECT_THAT(judge(made_by(other, S_IFREG | 0644), made_by(0, S_IFDIR | 01777)), HasSubstr("belongs to"));
    EXPECT_EQ(judge(made_by(self, S_IFREG | 0664), home), "others may write to it (mode 664)");
    EXPECT_EQ(judge(made_by(self, S_IFREG | 0646), home), "others may write to it (mode 646)");
    EXPECT_EQ(judge(made_by(self, S_IFREG | 0644), made_by(self, S_IFDIR | 0775)), "others may write to its folder (mode 775)");
    EXPECT_THAT(judge(made_by(self, S_IFREG | 0644), made_by(other, S_IFDIR | 0755)), HasSubstr("its folder belongs to"));
    EXPECT_EQ(judge(made_by(self, S_IFREG | 0644), made_by(0, S_IFDIR | 01777)), "");
    EXPECT_THAT(judge(made_by(self, S_IFREG | 0644), made_by(other, S_IFDIR | 01777)), HasSubstr("its folder belongs to"));
}

struct small_files : testing::Test {
    std::filesystem::path const folder =
        std::filesystem::temp_directory_path() / ("muster-trusted-file." + std::to_string(::getpid()));
    small_files() { std::filesystem::create_directory(folder); }
    ~small_files() override { std::filesystem::remove_all(folder); }
    static std::string failure(std::filesystem::path const& path) {
        try {
            read_small_file(path, "settings file");
        } catch (error const& e) {
            return e.what();
        }
        return "no error";
    }
};

TEST_F(small_files, are_read) {
    std::ofstream(folder / "a") << "text\n";
    EXPECT_EQ(read_small_file(folder / "a", "settings file"), "text\n");
    EXPECT_EQ(read_small_file(folder / "b", "settings file"), std::nullopt);
    EXPECT_EQ(read_small_file(folder / "a" / "b", "settings file"), std::nullopt);
}

TEST_F(small_files, others_are_refused_at_once) {
    ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
    EXPECT_THAT(failure(folder / "pipe"), HasSubstr("cannot read the settings file"));
    EXPECT_THAT(failure("/dev/zero"), HasSubstr("a pipe, a socket or a device"));
    EXPECT_THAT(failure(folder), HasSubstr("it is a folder"));
    std::ofstream(folder / "large") << std::string(longest_settings_bytes + 1, ' ');
    EXPECT_THAT(failure(folder / "large"), HasSubstr("more than 1024 KiB"));
}

TEST_F(small_files, of_another_user_are_known_by_a_link_too) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give a link to another user";
    std::ofstream(folder / "own") << "x";
    EXPECT_EQ(distrust((folder / "own").string()), "");
    std::filesystem::create_symlink(folder / "own", folder / "link");
    EXPECT_EQ(distrust((folder / "link").string()), "");
    ASSERT_EQ(::lchown((folder / "link").c_str(), other, other), 0);
    EXPECT_THAT(distrust((folder / "link").string()), HasSubstr("belongs to"));
    std::filesystem::create_symlink("link", folder / "first");  // the user's own, which goes on over it
    EXPECT_THAT(distrust((folder / "first").string()), HasSubstr("/link belongs to"));
    EXPECT_EQ(read_trusted_file((folder / "own").string(), "settings file").text, "x");
    EXPECT_EQ(read_trusted_file((folder / "first").string(), "settings file").text, std::nullopt);
    auto const none = read_trusted_file((folder / "none").string(), "settings file");
    EXPECT_EQ(none.text, std::nullopt);
    EXPECT_EQ(none.distrust, "");
}

}  // namespace
}  // namespace muster
