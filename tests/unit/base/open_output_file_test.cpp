#include "base/trust/open_output_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/error.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class output_file : public testing::Test {
  protected:
    output_file() {
        std::string name = (fs::temp_directory_path() / "muster-output-XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
    }
    ~output_file() override { fs::remove_all(folder_); }

    std::string at(std::string const& name) const { return (folder_ / name).string(); }
    void put(std::string const& name, std::string const& text) const { std::ofstream(at(name)) << text; }
    std::string text_of(std::string const& name) const {
        std::ifstream file(at(name));
        return {std::istreambuf_iterator<char>(file), {}};
    }
    std::string refusal_of(std::string const& name) const {
        try {
            open_output_file(at(name), "give another folder");
        } catch (error const& problem) {
            return problem.what();
        }
        return "";
    }

    fs::path folder_;
};

TEST_F(output_file, is_made_or_emptied) {
    for (std::string const before : {"", "what was there before"}) {
        if (!before.empty()) put("out", before);
        auto const file = open_output_file(at("out"));
        ASSERT_EQ(::write(file.get(), "now", 3), 3);
        EXPECT_EQ(text_of("out"), "now");
    }
}

TEST_F(output_file, no_link_is_followed) {
    put("precious", "kept");
    fs::create_symlink(at("precious"), at("out"));
    EXPECT_THAT(refusal_of("out"), HasSubstr("out is not written to: it is a symbolic link; give another folder"));
    fs::create_symlink(at("not there yet"), at("dangling"));
    EXPECT_THAT(refusal_of("dangling"), HasSubstr("it is a symbolic link"));
    EXPECT_FALSE(fs::exists(at("not there yet")));
    fs::create_hard_link(at("precious"), at("second"));
    EXPECT_THAT(refusal_of("second"), HasSubstr("the file has 2 names"));
    EXPECT_EQ(text_of("precious"), "kept");
}

// Both ways of opening a pipe: with nobody at its other end, and with somebody.
TEST_F(output_file, no_pipe_is_waited_for) {
    ASSERT_EQ(::mkfifo(at("out").c_str(), 0666), 0);
    EXPECT_THAT(refusal_of("out"), HasSubstr("it is a pipe"));
    std::fstream const reader(at("out"));
    EXPECT_THAT(refusal_of("out"), HasSubstr("it is a pipe"));
}

TEST_F(output_file, what_cannot_be_made_is_told_with_the_hint_last) {
    fs::create_directories(at("folder"));
    EXPECT_THAT(refusal_of("folder"), HasSubstr("it is a folder; give another folder"));
    EXPECT_THAT(refusal_of("missing/out"), testing::EndsWith("; give another folder"));
}

TEST_F(output_file, another_users_file_and_folder_are_left_alone) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give files away";
    put("out", "kept");
    ASSERT_EQ(::chown(at("out").c_str(), 4711, 4711), 0);
    EXPECT_THAT(refusal_of("out"), HasSubstr("it belongs to the user with number 4711"));
    EXPECT_EQ(text_of("out"), "kept");
    fs::create_directories(at("theirs"));
    ASSERT_EQ(::chown(at("theirs").c_str(), 4711, 4711), 0);
    EXPECT_THROW(output_folder(at("theirs")), error);
}

TEST_F(output_file, a_folder_keeps_its_files_when_its_name_is_given_to_another) {
    output_folder const made(at("a/rank.0"));
    EXPECT_EQ(made.path(), at("a/rank.0"));
    fs::rename(at("a/rank.0"), at("a/moved"));
    fs::create_directories(at("private"));
    fs::create_directory_symlink(at("private"), at("a/rank.0"));
    made.open_file("stdout");
    EXPECT_TRUE(fs::exists(at("a/moved/stdout")));
    EXPECT_FALSE(fs::exists(at("private/stdout")));
    EXPECT_THROW(output_folder(at("a/rank.0")), error);
}

}  // namespace
}  // namespace muster
