#include "bench/launching/timed_run.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>

#include "base/error.hpp"
#include "base/process/process.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"

namespace muster {

namespace {

using clock = std::chrono::steady_clock;

/// In a process group of its own, so that all of it can be killed; what is not given is /dev/null.
pid_t start(std::vector<std::string> const& command, environment const& variables, int output_fd = -1, int error_fd = -1) {
    return start_process({.path = command.front(),
                          .arguments = &command,
                          .variables = &variables,
                          .working_dir = "",
                          .stdout_fd = output_fd,
                          .stderr_fd = error_fd,
                          .cores = {},
                          .open_files = {},
                          .death_signal = SIGTERM});
}

/// The last line of what was written there that holds anything, without control characters.
std::string last_line_of(int file) {
    char text[4096];
    auto const size = ::lseek(file, 0, SEEK_END);
    auto const from = std::max<off_t>(0, size - static_cast<off_t>(sizeof text));
    auto const got = ::pread(file, text, sizeof text, from);
    std::string last;
    for (auto const line : split(std::string_view(text, static_cast<std::size_t>(std::max<ssize_t>(0, got))), '\n'))
        if (!trim(line).empty()) last = without_controls(std::string(trim(line)));
    return last;
}

int shell_code(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

unique_fd pidfd_of(pid_t pid, std::string const& name) {
    unique_fd end(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (end) return end;
    int const code = errno;
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    throw_system("pidfd_open", "of " + name, code, "this needs Linux 5.3 or later");
}

bool readable(int fd, std::chrono::time_point<clock, duration> limit) {
    pollfd wait{fd, POLLIN, 0};
    int ready = 0;
    do {
        duration const left = limit - clock::now();
        ready = ::poll(&wait, 1, std::max(0, static_cast<int>(std::ceil(left.count() * 1000))));
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
}

int wait_for(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return shell_code(status);
}

}  // namespace

std::string failure_text(timed_result const& ended) {
    auto const how = ended.timed_out ? std::string("hung") : fmt::format("exit code {}", ended.exit_code);
    return ended.last_line.empty() ? how : fmt::format("{}: {}", how, ended.last_line);
}

timed_result run_timed(std::vector<std::string> const& command, environment const& variables, duration deadline) {
    unique_fd const errors(::memfd_create("standard error", MFD_CLOEXEC));
    auto const before = clock::now();
    pid_t const pid = start(command, variables, -1, errors.get());
    timed_result result;
    auto const end = pidfd_of(pid, command.front());
    if (!readable(end.get(), before + deadline)) {
        result.timed_out = true;
        ::kill(-pid, SIGKILL);
    }
    result.exit_code = wait_for(pid);
    result.wall = clock::now() - before;
    if (errors && (result.timed_out || result.exit_code != 0)) result.last_line = last_line_of(errors.get());
    return result;
}

timed_result run_timed_from_output(std::vector<std::string> const& command, environment const& variables, duration deadline) {
    auto [output, input] = make_pipe();
    auto const limit = clock::now() + deadline;
    pid_t const pid = start(command, variables, input.get());
    input.reset();
    auto const end = pidfd_of(pid, command.front());
    timed_result result;
    auto first = clock::time_point::max();
    char bytes[4096];
    while (readable(output.get(), limit)) {
        auto const n = ::read(output.get(), bytes, sizeof bytes);
        if (n > 0 && first == clock::time_point::max()) first = clock::now();
        if (n == 0 || (n < 0 && errno != EINTR)) break;
    }
    if (!readable(end.get(), limit)) {
        result.timed_out = true;
        ::kill(-pid, SIGKILL);
    }
    result.exit_code = wait_for(pid);
    if (first != clock::time_point::max()) result.wall = clock::now() - first;
    return result;
}

duration run_bare(std::vector<std::string> const& command, environment const& variables, int count) {
    auto const before = clock::now();
    std::vector<pid_t> pids;
    for (int i = 0; i < count; ++i) pids.push_back(start(command, variables));
    for (auto const pid : pids) ::waitpid(pid, nullptr, 0);
    return clock::now() - before;
}

}  // namespace muster
