#include "base/run_captured.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/process.hpp"
#include "base/unique_fd.hpp"

namespace muster {

namespace {

using steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

using pipe_ends = std::pair<unique_fd, unique_fd>;

pipe_ends make_capture_pipe() {
    auto ends = make_pipe();
    ::fcntl(ends.first.get(), F_SETFL, O_NONBLOCK);
    return ends;
}

/// Reads what is there; closes at the end of the file.
void drain(unique_fd& from, std::string& into) {
    std::array<char, 65536> buffer;
    while (from && into.size() <= command_output_limit) {
        auto const got = ::read(from.get(), buffer.data(), buffer.size());
        if (got > 0) {
            into.append(buffer.data(), static_cast<std::size_t>(got));
            continue;
        }
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return;
        from.reset();
    }
}

/// Waits for output, an end of it, or `most`.
void wait_for_output(unique_fd const& out, unique_fd const& err, milliseconds most) {
    std::array<pollfd, 2> fds{{{out ? out.get() : -1, POLLIN, 0}, {err ? err.get() : -1, POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), static_cast<int>(std::clamp<std::int64_t>(most.count(), 0, 1000)));
}

/// Ends the process and its group when it goes out of scope without having been waited for.
class child {
  public:
    explicit child(pid_t pid) : pid_(pid) {}
    child(child const&) = delete;
    child& operator=(child const&) = delete;
    ~child() {
        if (pid_ > 0) kill_and_reap();
    }

    /// The exit status, 128+n for signal n, once it has ended.
    std::optional<int> ended() {
        int status = 0;
        pid_t const done = ::waitpid(pid_, &status, WNOHANG);
        if (done == 0 || (done < 0 && errno == EINTR)) return std::nullopt;
        pid_ = -1;
        if (done < 0) return 0;  // somebody else has reaped it (SIGCHLD ignored): its output is what counts
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }

    void kill_and_reap() {
        ::kill(-pid_, SIGKILL);
        ::kill(pid_, SIGKILL);
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        pid_ = -1;
    }

  private:
    pid_t pid_;
};

std::string last_line(std::string const& text) {
    auto const end = text.find_last_not_of(" \t\r\n");
    if (end == std::string::npos) return "";
    auto const start = text.find_last_of('\n', end);
    return text.substr(start == std::string::npos ? 0 : start + 1, end - (start == std::string::npos ? 0 : start + 1) + 1);
}

pid_t start(std::vector<std::string> const& argv, environment const& variables, pipe_ends const& out, pipe_ends const& err) {
    unique_fd const empty(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!empty) throw_system("open", "/dev/null");
    spawn_request request;
    request.path = find_program(argv.front(), variables, "");
    request.arguments = &argv;
    request.variables = &variables;
    request.stdin_fd = empty.get();
    request.stdout_fd = out.second.get();
    request.stderr_fd = err.second.get();
    ::getrlimit(RLIMIT_NOFILE, &request.open_files);
    return spawn(request);
}

}  // namespace

command_output run_captured(std::vector<std::string> const& argv, environment const& variables, milliseconds limit) {
    command_output result;
    auto const deadline = steady::now() + limit;
    auto out = make_capture_pipe();
    auto err = make_capture_pipe();
    pid_t pid = -1;
    try {
        pid = start(argv, variables, out, err);
    } catch (program_error const& e) {
        return {e.exit_status(), "", e.what()};
    }
    child running(pid);
    out.second.reset();
    err.second.reset();
    milliseconds pause{1};  // between looks at a process that has closed its output and lives on
    while (true) {
        auto const left = std::chrono::duration_cast<milliseconds>(deadline - steady::now());
        if (left.count() <= 0) {
            running.kill_and_reap();
            result.exit_status = 124;
            auto const said = last_line(result.err);
            result.err = fmt::format("{} did not answer within {:.3g} s{}{}", argv.front(),
                                     static_cast<double>(limit.count()) / 1e3, said.empty() ? "" : "; it said: ", said);
            return result;
        }
        bool const open = out.first || err.first;
        pause = open ? milliseconds{20} : std::min(pause * 2, milliseconds{20});
        wait_for_output(out.first, err.first, std::min(left, pause));
        drain(out.first, result.out);
        drain(err.first, result.err);
        if (std::max(result.out.size(), result.err.size()) > command_output_limit) {
            running.kill_and_reap();
            return {125, "", fmt::format("{} printed more than {} MiB", argv.front(), command_output_limit >> 20)};
        }
        auto const status = running.ended();
        if (!status) continue;
        drain(out.first, result.out);  // what it wrote last; descendants that hold the pipe are not waited for
        drain(err.first, result.err);
        result.exit_status = *status;
        return result;
    }
}

}  // namespace muster
