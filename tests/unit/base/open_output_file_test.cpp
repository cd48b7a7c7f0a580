#include "base/trust/open_output_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>

#include "base/error.hpp"
#include "base/process/files.hpp"

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

// What leads there matters as much as what is there: a link of another user's on the way, relative or absolute.
TEST_F(output_file, links_of_others_on_the_way_are_not_followed) {
    fs::create_directories(at("private/deep"));
    fs::create_directory_symlink(at("private"), at("own"));
    fs::create_directory_symlink("own/../private", at("chained"));
    EXPECT_EQ(refusal_of("own/deep/out") + refusal_of("chained/out") + refusal_of("own/./deep/../out"), "");
    EXPECT_TRUE(fs::exists(at("private/deep/out")) && fs::exists(at("private/out")));
    fs::create_directory_symlink("loop", at("loop"));
    EXPECT_THAT(refusal_of("loop/out"), HasSubstr("Too many levels"));
    if (::geteuid() != 0) GTEST_SKIP() << "the rest needs root, to give links away";
    fs::remove(at("private/deep/out"));
    fs::create_directory_symlink("private", at("theirs"));
    ASSERT_EQ(::lchown(at("theirs").c_str(), 4711, 4711), 0);
    fs::create_directory_symlink("theirs", at("over"));
    for (std::string const name : {"theirs/deep/out", "over/deep/out", "theirs/../private/deep/out"})
        EXPECT_THAT(refusal_of(name), HasSubstr("the link theirs on the way belongs to the user with number 4711")) << name;
    EXPECT_FALSE(fs::exists(at("private/deep/out")));
    EXPECT_THROW(output_folder(at("theirs/made/here")), error);
    EXPECT_FALSE(fs::exists(at("private/made")));
}

TEST_F(output_file, what_is_there_is_kept_or_refused_as_asked) {
    put("out", "kept");
    EXPECT_FALSE(open_output_file(at("out"), {}, if_there::refused));
    EXPECT_EQ(errno, EEXIST);
    EXPECT_TRUE(open_output_file(at("out"), {}, if_there::kept));
    EXPECT_EQ(text_of("out"), "kept");
    fs::create_symlink(at("out"), at("link"));
    EXPECT_FALSE(open_output_file(at("link"), {}, if_there::refused));
    EXPECT_THROW(open_output_file(at("link"), {}, if_there::kept), error);
}

TEST_F(output_file, a_descriptor_has_its_usual_names) {
    put("out", "");
    auto const open = open_output_file(at("out"));
    write_output_file("/dev/fd/" + std::to_string(open.get()), "first ");
    write_output_file("/dev/fd/" + std::to_string(open.get()), "second");
    write_output_file("/dev/null", "nothing");
    EXPECT_EQ(text_of("out"), "first second");
}

// Every other way to open an output follows links: products write by open_output_file(), or by a name in a folder that is open.
TEST(output_files, no_product_opens_one_in_another_way) {
    auto const has = [](std::string const& line, std::initializer_list<char const*> words) {
        return std::any_of(words.begin(), words.end(), [&](char const* word) { return line.find(word) != std::string::npos; });
    };
    std::string found;
    fs::path const root = MUSTER_SOURCE_DIR;
    for (std::string const folder : {"base", "pmix", "comm", "io", "launch", "bench"})
        for (auto const& entry : fs::recursive_directory_iterator(root / folder)) {
            auto const extension = entry.path().extension();
            if (extension != ".cpp" && extension != ".hpp" && extension != ".cu") continue;
            std::ifstream file(entry.path());
            std::string line;
            for (int number = 1; std::getline(file, line); ++number) {
                bool const in_folder = !has(line, {"::open("}) && has(line, {"O_NOFOLLOW", "O_EXCL"});
                bool const by_fopen = has(line, {"fopen("}) && has(line, {"\"w", "\"a", "\"r+", "\"rb+"});
                bool const by_hdf5 = has(line, {"H5Fcreate("}) && !has(line, {"H5F_ACC_EXCL"});
                bool const follows =
                    has(line, {"ofstream", "std::fstream", "freopen", "::creat(", "copy_file(", "png_image_write_to_file"});
                if (follows || by_fopen || by_hdf5 || (has(line, {"O_CREAT", "O_TRUNC"}) && !in_folder))
                    found += fs::relative(entry.path(), root).string() + ":" + std::to_string(number) + ": " + line + "\n";
            }
        }
    EXPECT_EQ(found, "");
}

TEST_F(output_file, a_folder_keeps_its_files_when_its_name_is_given_to_another) {
    output_folder const made(at("a/rank.0"));
    EXPECT_EQ(made.path(), at("a/rank.0"));
    fs::rename(at("a/rank.0"), at("a/moved"));
    fs::create_directories(at("private"));
    fs::create_directory_symlink(at("private"), at("a/rank.0"));
    made.open_file("stdout");
    made.replace_file("record", "first", {}, 0600);
    made.replace_file("record", "second", {}, 0600);
    EXPECT_EQ(read_text_file(at("a/moved/record")), "second");
    EXPECT_EQ(fs::status(at("a/moved/record")).permissions(), fs::perms(0600));
    EXPECT_FALSE(fs::exists(at("a/moved/record.new")));
    EXPECT_TRUE(fs::exists(at("a/moved/stdout")));
    EXPECT_FALSE(fs::exists(at("private/stdout")));
    EXPECT_THROW(output_folder(at("a/rank.0")), error);
}

}  // namespace
}  // namespace muster
