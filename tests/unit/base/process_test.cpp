#include "base/process/process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.hpp"
#include "base/process/this_process.hpp"
#include "base/unique_fd.hpp"

namespace muster {
namespace {

std::string output_of(process_request request) {
    auto [from, to] = make_pipe();
    request.stdout_fd = to.get();
    pid_t const pid = start_process(request);
    to.reset();
    std::string text;
    char bytes[4096];
    for (ssize_t n = 0; (n = ::read(from.get(), bytes, sizeof bytes)) > 0;) text.append(bytes, static_cast<std::size_t>(n));
    ::waitpid(pid, nullptr, 0);
    return text;
}

TEST(processes, get_their_own_variables_group_and_folder) {
    std::vector<std::string> const argv{"sh", "-c", "echo $ONLY $(pwd) $$; cut -d' ' -f5 /proc/$$/stat; cat"};
    environment const variables{{"ONLY", "this"}, {"PATH", "/usr/bin:/bin"}};
    process_request request;
    request.path = "/bin/sh";
    request.arguments = &argv;
    request.variables = &variables;
    request.working_dir = "/";
    std::istringstream words(output_of(request));
    std::string only, folder, pid, group;
    words >> only >> folder >> pid >> group;
    EXPECT_EQ(only, "this");
    EXPECT_EQ(folder, "/");
    EXPECT_EQ(pid, group);  // and `cat` has ended: standard input is empty

    request.own_group = false;
    std::istringstream again(output_of(request));
    again >> only >> folder >> pid >> group;
    EXPECT_EQ(group, std::to_string(::getpgrp()));
}

TEST(processes, begin_with_the_signals_ignored_that_they_are_to_ignore) {
    std::vector<std::string> const argv{"sh", "-c", "kill -USR1 $$; sed -n 's/^SigIgn:\\s*//p' /proc/$$/status"};
    environment const variables{{"PATH", "/usr/bin:/bin"}};
    process_request request;
    request.path = "/bin/sh";
    request.arguments = &argv;
    request.variables = &variables;
    EXPECT_EQ(output_of(request), "");
    request.ignored = {SIGUSR1, SIGALRM};
    EXPECT_EQ(std::strtoull(output_of(request).c_str(), nullptr, 16), 1ULL << (SIGUSR1 - 1) | 1ULL << (SIGALRM - 1));
}

TEST(processes, get_the_limits_and_the_umask_that_they_are_to_have) {
    std::vector<std::string> const argv{"bash", "-c", "ulimit -c; ulimit -s; ulimit -Hn; ulimit -n; umask"};
    environment const variables{{"PATH", "/usr/bin:/bin"}};
    rlimit files{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
    process_request request;
    request.path = "/bin/bash";
    request.arguments = &argv;
    request.variables = &variables;
    request.limits = {{RLIMIT_CORE, 0}, {RLIMIT_STACK, 3u << 20}, {RLIMIT_NOFILE, RLIM_INFINITY}};
    request.file_mask = 027;
    std::istringstream words(output_of(request));
    std::string core, stack, most_files, files_now, mask;
    words >> core >> stack >> most_files >> files_now >> mask;
    EXPECT_EQ(core, "0");
    EXPECT_EQ(stack, "3072");
    EXPECT_EQ(files_now, most_files);  // as many as the hard limit allows
    EXPECT_EQ(mask, "0027");
    rlimit after{};
    ::getrlimit(RLIMIT_NOFILE, &after);
    EXPECT_EQ(after.rlim_cur, files.rlim_cur);  // this process keeps its own
}

TEST(processes, that_cannot_be_executed_are_told) {
    std::vector<std::string> const argv{"x"};
    environment const variables;
    process_request request;
    request.path = "/etc/passwd";
    request.arguments = &argv;
    request.variables = &variables;
    EXPECT_THROW(start_process(request), program_error);
    request.path = "/bin/true";
    request.working_dir = "/no/such/folder";
    EXPECT_THROW(start_process(request), error);
}

TEST(programs, are_found_as_a_shell_finds_them) {
    environment const v{{"PATH", "/nonexistent:/usr/bin:/bin"}};
    EXPECT_NE(find_program("true", v, "").find("/true"), std::string::npos);
    EXPECT_EQ(find_program("/bin/sh", v, ""), "/bin/sh");
    EXPECT_EQ(find_program("./sh", v, "/bin"), "/bin/./sh");
    auto const status = [&](char const* program) {
        try {
            find_program(program, v, "");
        } catch (program_error const& e) {
            return e.exit_status();
        }
        return 0;
    };
    EXPECT_EQ(status("no-such-program"), 127);
    EXPECT_EQ(status("/no/such"), 127);
    EXPECT_EQ(status("/etc"), 126);
    EXPECT_EQ(status("/etc/passwd"), 126);
}

TEST(programs, python_is_called_python3_where_that_is_there) {
    std::string name = (std::filesystem::temp_directory_path() / "muster-path.XXXXXX").string();
    std::filesystem::path const folder = ::mkdtemp(name.data());
    std::filesystem::create_symlink("/bin/sh", folder / "python3");
    std::string said;
    try {
        find_program("python", {{"PATH", folder.string()}}, "");
    } catch (program_error const& e) {
        said = e.what();
    }
    std::filesystem::remove_all(folder);
    EXPECT_NE(said.find("there is python3: write that"), std::string::npos) << said;
}

TEST(programs, that_are_not_there_are_nothing) {
    EXPECT_EQ(find_program_or_nothing("sh", {{"PATH", "/nowhere:/bin"}}), "/bin/sh");
    EXPECT_EQ(find_program_or_nothing("sh", {{"PATH", "/nowhere"}}), "");
    EXPECT_EQ(find_program_or_nothing("/bin/sh", {}), "/bin/sh");
    EXPECT_EQ(find_program_or_nothing("/etc/passwd", {}), "");
}

TEST(programs, know_themselves) {
    EXPECT_EQ(self_program().filename(), "unit_base");
}

}  // namespace
}  // namespace muster
