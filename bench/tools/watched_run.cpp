#include "bench/tools/watched_run.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>

#include "base/error.hpp"
#include "base/process/process.hpp"
#include "base/unique_fd.hpp"

namespace muster {

namespace {

using clock = std::chrono::steady_clock;

sigset_t stopping() {
    sigset_t set;
    sigemptyset(&set);
    for (int const signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
    return set;
}

/// A child that is killed with its group at the end of its scope unless it has ended.
class watched_child {
  public:
    watched_child(std::vector<std::string> const& command, environment const& variables, int output) {
        pid_ = start_process({.path = find_program(command.front(), variables, ""),
                              .arguments = &command,
                              .variables = &variables,
                              .working_dir = "",
                              .stdout_fd = output,
                              .stderr_fd = output,
                              .cores = {},
                              .open_files = {},
                              .death_signal = SIGTERM});
        end_ = unique_fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    }
    watched_child(watched_child const&) = delete;
    watched_child& operator=(watched_child const&) = delete;
    ~watched_child() {
        if (pid_ <= 0) return;
        kill_group();
        while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }

    int end_fd() const noexcept { return end_ ? end_.get() : -1; }
    void send(int signal) const { ::kill(pid_, signal); }
    void kill_group() const { ::kill(-pid_, SIGKILL); }

    std::optional<int> ended() {
        int status = 0;
        if (pid_t const done = ::waitpid(pid_, &status, WNOHANG); done != pid_) return {};
        pid_ = -1;
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }

  private:
    pid_t pid_ = -1;
    unique_fd end_;
};

/// Passes on what is there; closes at the end.
void hand_on(unique_fd& from, std::function<void(std::string_view)> const& output) {
    std::array<char, 65536> buffer;
    while (from) {
        auto const got = ::read(from.get(), buffer.data(), buffer.size());
        if (got > 0) {
            output({buffer.data(), static_cast<std::size_t>(got)});
            continue;
        }
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return;
        from.reset();
    }
}

int wait_ms(std::optional<clock::time_point> deadline, bool sees_end) {
    double const most = sees_end ? 60'000 : 5;  // before Linux 5.3 the end must be polled for
    if (!deadline) return static_cast<int>(most);
    double const left = std::chrono::duration<double, std::milli>(*deadline - clock::now()).count();
    return static_cast<int>(std::clamp(std::ceil(left), 0.0, most));
}

}  // namespace

stop_signals::stop_signals() {
    auto const set = stopping();
    if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) throw_system("sigprocmask", "of the signals that stop");
    fd_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd_ < 0) throw_system("signalfd", "of the signals that stop");
}

stop_signals::~stop_signals() {
    came();  // signals received so far must not end this process now
    ::close(fd_);
    auto const set = stopping();
    ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

std::optional<int> stop_signals::came() {
    signalfd_siginfo info{};
    while (::read(fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
        if (!first_) first_ = static_cast<int>(info.ssi_signo);
    return first_;
}

watched_result run_watched(std::vector<std::string> const& command, environment const& variables, stop_signals& signals,
                           duration limit, std::function<void(std::string_view)> const& output, duration patience) {
    auto [from, to] = make_pipe();
    ::fcntl(from.get(), F_SETFL, O_NONBLOCK);
    watched_result result;
    auto const start = clock::now();
    watched_child child(command, variables, to.get());
    to.reset();
    std::optional<clock::time_point> deadline;
    if (limit.count() > 0) deadline = start + std::chrono::duration_cast<clock::duration>(limit);
    while (true) {
        std::array<pollfd, 3> fds{{{from ? from.get() : -1, POLLIN, 0}, {child.end_fd(), POLLIN, 0}, {signals.fd(), POLLIN, 0}}};
        ::poll(fds.data(), fds.size(), wait_ms(deadline, child.end_fd() >= 0));
        hand_on(from, output);
        if ((fds[2].revents & POLLIN) != 0 || (signals.came() && !result.stopped)) {
            auto const signal = signals.came();
            if (result.stopped) {
                child.kill_group();
            } else if (signal) {
                result.stopped = signal;
                child.send(*signal == SIGINT ? SIGINT : SIGTERM);
                deadline = clock::now() + std::chrono::duration_cast<clock::duration>(patience);
            }
        }
        if (deadline && clock::now() >= *deadline) {
            result.killed_at_limit = !result.stopped;
            child.kill_group();
            deadline.reset();
        }
        if (auto const code = child.ended()) {
            result.exit_code = *code;
            result.wall = clock::now() - start;
            hand_on(from, output);  // its last output; descendants that hold the pipe are not waited for
            return result;
        }
    }
}

}  // namespace muster
