#include "bench/child.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.hpp"

namespace muster {
namespace {

child_result capture(std::vector<std::string> const& command, std::string input = {}) {
    child_options how;
    how.capture_output = true;
    how.input = std::move(input);
    return run_child(command, environment::capture(), how);
}

TEST(run_child, gives_output_and_exit_code) {
    auto const result = capture({"sh", "-c", "echo out; exit 7"});
    EXPECT_EQ(result.output, "out\n");
    EXPECT_EQ(result.exit_code, 7);
    EXPECT_GT(result.wall_s, 0);
    EXPECT_EQ(capture({"sh", "-c", "kill -9 $$"}).exit_code, 137);
}

// More than any pipe holds, in both directions at once.
TEST(run_child, feeds_input_while_it_reads_output) {
    std::string const input(3 << 20, 'x');
    EXPECT_EQ(capture({"cat"}, input).output, input);
    EXPECT_EQ(capture({"true"}, input).exit_code, 0) << "a child that does not read its input";
}

TEST(run_child, keeps_messages_in_a_file) {
    auto const file = std::filesystem::temp_directory_path() / ("muster-child-" + std::to_string(::getpid()));
    child_options how;
    how.capture_output = true;
    how.error_file = file.string();
    EXPECT_EQ(run_child({"sh", "-c", "echo message >&2; echo out"}, environment::capture(), how).output, "out\n");
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    EXPECT_EQ(text.str(), "message\n");
    std::filesystem::remove(file);
}

TEST(run_child, gets_just_the_environment_given) {
    child_options how;
    how.capture_output = true;
    EXPECT_EQ(run_child({"/bin/sh", "-c", "echo $ONE$HOME"}, environment{{"ONE", "1"}}, how).output, "1\n");
}

TEST(run_child, names_a_program_that_is_not_there) {
    for (auto const* name : {"no-such-program-anywhere", "/no/such/program"}) {
        try {
            run_child({name}, environment::capture());
            FAIL();
        } catch (error const& e) {
            EXPECT_EQ(e.code(), errc::not_found);
            EXPECT_NE(std::string(e.what()).find(name), std::string::npos);
        }
    }
}

TEST(find_program, looks_along_the_path) {
    EXPECT_EQ(find_program("sh", environment{{"PATH", "/nowhere:/bin"}}), "/bin/sh");
    EXPECT_EQ(find_program("sh", environment{{"PATH", "/nowhere"}}), "");
    EXPECT_EQ(find_program("/bin/sh", environment{}), "/bin/sh");
}

}  // namespace
}  // namespace muster
