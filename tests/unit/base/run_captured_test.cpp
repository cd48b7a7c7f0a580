#include "base/process/run_captured.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/process/process.hpp"
#include "base/unique_fd.hpp"

namespace muster {
namespace {

using std::chrono::milliseconds;

command_output shell(std::string const& script, milliseconds limit = command_limit) {
    return run_captured({"sh", "-c", script}, environment::capture(), limit);
}

TEST(captured_commands, output_errors_and_status) {
    auto const said = shell("echo out; echo err >&2; exit 7");
    EXPECT_EQ(said.exit_status, 7);
    EXPECT_EQ(said.out, "out\n");
    EXPECT_EQ(said.err, "err\n");
    EXPECT_EQ(shell("kill -TERM $$").exit_status, 128 + 15);
}

TEST(captured_commands, have_an_empty_input) {
    EXPECT_EQ(shell("cat; echo end").out, "end\n");
}

TEST(captured_commands, that_are_not_there) {
    auto const said = run_captured({"no-such-command-of-any-scheduler"}, environment::capture());
    EXPECT_EQ(said.exit_status, 127);
    EXPECT_NE(said.err.find("no-such-command-of-any-scheduler"), std::string::npos);
    EXPECT_EQ(run_captured({"/etc/passwd"}, environment::capture()).exit_status, 126);
}

TEST(captured_commands, are_found_along_the_given_path) {
    EXPECT_EQ(run_captured({"sh", "-c", "echo x"}, {{"PATH", "/nowhere"}}).exit_status, 127);
    EXPECT_EQ(run_captured({"env"}, {{"PATH", "/usr/bin:/bin"}, {"ONLY", "this"}}).out, "ONLY=this\nPATH=/usr/bin:/bin\n");
}

TEST(captured_commands, large_output_arrives_whole) {
    auto const said = shell("head -c 3000000 /dev/zero; head -c 300000 /dev/zero >&2");
    EXPECT_EQ(said.out.size(), 3'000'000u);
    EXPECT_EQ(said.err.size(), 300'000u);
}

TEST(captured_commands, that_hang_are_killed_with_their_children) {
    auto const said = shell("echo waiting for slurmctld >&2; sleep 1000 & wait", milliseconds{200});
    EXPECT_EQ(said.exit_status, 124);
    EXPECT_EQ(said.err, "sh did not answer within 0.2 s; it printed: waiting for slurmctld");
    EXPECT_EQ(shell("exec >&- 2>&-; sleep 1000", milliseconds{100}).exit_status, 124);
    EXPECT_EQ(shell("trap '' TERM INT HUP; sleep 1000", milliseconds{100}).exit_status, 124);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child was not waited for";
}

TEST(captured_commands, descendants_that_live_on_are_not_waited_for) {
    auto const said = shell("echo first; sleep 30 & echo $!");
    EXPECT_EQ(said.exit_status, 0);
    EXPECT_TRUE(said.out.starts_with("first\n"));
    ::kill(std::stoi(said.out.substr(6)), SIGKILL);
}

TEST(captured_commands, endless_output_is_cut_off) {
    auto const said = shell("yes");
    EXPECT_EQ(said.exit_status, 125);
    EXPECT_EQ(said.err, "sh printed more than 65536 KiB");
}

TEST(programs_run, get_their_input_and_end_of_it) {
    std::string const input(300'000, 'x');
    capture_options how;
    how.input = input;
    EXPECT_EQ(run_program({"wc", "-c"}, environment::capture(), how).out, "300000\n");
    EXPECT_EQ(run_program({"true"}, environment::capture(), how).exit_status, 0);  // reads none of it
}

TEST(programs_run, output_goes_where_it_is_told) {
    auto [from, to] = make_pipe();
    capture_options how;
    how.out_fd = to.get();
    auto const result = run_program({"sh", "-c", "echo out; echo err >&2"}, environment::capture(), how);
    to.reset();
    char bytes[16];
    EXPECT_EQ(std::string(bytes, static_cast<std::size_t>(::read(from.get(), bytes, sizeof bytes))), "out\n");
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, "err\n");
}

TEST(programs_run, time_is_that_of_the_process) {
    capture_options how;
    how.out_fd = how.err_fd = 2;  // no pipe tells of the end
    auto const result = run_program({"sleep", "0.1"}, environment::capture(), how);
    EXPECT_GE(result.wall.count(), 0.1);
    EXPECT_LT(result.wall.count(), 2.0);
}

TEST(programs_run, print_no_more_than_their_limit) {
    capture_options how;
    how.output_limit = 100'000;
    EXPECT_EQ(run_program({"head", "-c", "99000", "/dev/zero"}, environment::capture(), how).out.size(), 99'000u);
    EXPECT_EQ(run_program({"head", "-c", "300000", "/dev/zero"}, environment::capture(), how).exit_status, 125);
}

TEST(programs_run, that_are_not_there_throw) {
    EXPECT_THROW(run_program({"no-such-program-at-all"}, environment::capture(), {}), program_error);
}

}  // namespace
}  // namespace muster
