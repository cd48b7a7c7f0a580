#include "base/process/run_captured.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

#include "base/error.hpp"
#include "base/process/process.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"

namespace muster {

namespace {

using steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds longest_kill{2000};

/// Reads what is there; closes at the end of the file.
void drain(unique_fd& from, std::string& into, std::size_t limit) {
    std::array<char, 65536> buffer;
    while (from && into.size() <= limit) {
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

/// Writes what the pipe takes; closes it when all is written, or when nobody reads it any more.
void feed(unique_fd& to, std::string_view& input) {
    while (to && !input.empty()) {
        auto const put = ::write(to.get(), input.data(), input.size());
        if (put > 0)
            input.remove_prefix(static_cast<std::size_t>(put));
        else if (put < 0 && errno == EAGAIN)
            return;
        else if (put < 0 && errno != EINTR)
            input = {};
    }
    to.reset();
}

/// Ends the process and its group when it goes out of scope without having been waited for.
class child {
  public:
    child(pid_t pid, bool own_group)
        : pid_(pid), own_group_(own_group), end_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
    child(child const&) = delete;
    child& operator=(child const&) = delete;
    ~child() {
        if (pid_ > 0) kill_and_reap();
    }

    /// Becomes readable when the process ends; -1 before Linux 5.3.
    int end_fd() const noexcept { return end_ ? end_.get() : -1; }

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
        if (own_group_) ::kill(-pid_, SIGKILL);
        ::kill(pid_, SIGKILL);
        auto const end = steady::now() + longest_kill;  // a process that waits for a file system may stay
        timespec const pause{0, 1'000'000};
        while (!ended() && steady::now() < end) ::nanosleep(&pause, nullptr);
        pid_ = -1;
    }

  private:
    pid_t pid_;
    bool own_group_;
    unique_fd end_;
};

/// A program that closes its input early must not end this process.
class without_sigpipe {
  public:
    without_sigpipe() : before_(::signal(SIGPIPE, SIG_IGN)) {}
    ~without_sigpipe() { ::signal(SIGPIPE, before_); }
    without_sigpipe(without_sigpipe const&) = delete;
    without_sigpipe& operator=(without_sigpipe const&) = delete;

  private:
    sighandler_t before_;
};

std::string last_line(std::string const& text) {
    auto const trimmed = trim(text);
    return std::string(trimmed.substr(trimmed.rfind('\n') + 1));
}

/// One run of one command. A pipe's end that this process uses never blocks.
class captured_run {
  public:
    captured_run(std::vector<std::string> const& argv, environment const& variables, capture_options const& how)
        : argv_(argv), how_(how), input_(how.input) {
        unique_fd child_in, child_out, child_err;
        if (!how.input.empty()) std::tie(child_in, in_) = make_pipe();
        if (how.out_fd < 0) std::tie(out_, child_out) = make_pipe();
        if (how.err_fd < 0) std::tie(err_, child_err) = make_pipe();
        for (auto const* end : {&in_, &out_, &err_})
            if (*end) ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
        process_request const request{.path = find_program(argv.front(), variables, ""),
                                      .arguments = &argv,
                                      .variables = &variables,
                                      .working_dir = "",
                                      .stdin_fd = child_in ? child_in.get() : -1,
                                      .stdout_fd = child_out ? child_out.get() : how.out_fd,
                                      .stderr_fd = child_err ? child_err.get() : how.err_fd,
                                      .own_group = how.own_group,
                                      .death_signal = how.death_signal};
        start_ = steady::now();
        child_.emplace(start_process(request), how.own_group);
    }

    command_output finish() {
        while (true) {
            if (how_.limit && steady::now() - start_ >= *how_.limit) return give_up(124, late());
            wait();
            transfer();
            if (std::max(result_.out.size(), result_.err.size()) > how_.output_limit)
                return give_up(125, fmt::format("{} printed more than {} KiB", argv_.front(), how_.output_limit >> 10));
            auto const status = child_->ended();
            if (!status) continue;
            transfer();  // what it wrote last; descendants that hold the pipes are not waited for
            result_.exit_status = *status;
            result_.wall = steady::now() - start_;
            return std::move(result_);
        }
    }

  private:
    void transfer() {
        drain(out_, result_.out, how_.output_limit);
        drain(err_, result_.err, how_.output_limit);
        feed(in_, input_);
    }

    /// Waits for output, for room for input, for the end of the process or for the limit.
    void wait() const {
        auto const fd = [](unique_fd const& end) { return end ? end.get() : -1; };
        std::array<pollfd, 4> fds{
            {{fd(out_), POLLIN, 0}, {fd(err_), POLLIN, 0}, {fd(in_), POLLOUT, 0}, {child_->end_fd(), POLLIN, 0}}};
        milliseconds most{child_->end_fd() >= 0 ? 60'000 : 5};
        if (how_.limit) most = std::min(most, std::chrono::ceil<milliseconds>(start_ + *how_.limit - steady::now()));
        ::poll(fds.data(), fds.size(), static_cast<int>(std::max(most, milliseconds{0}).count()));
    }

    std::string late() const {
        auto const last = last_line(result_.err);
        return fmt::format("{} did not answer within {:.3g} s{}{}", argv_.front(),
                           std::chrono::duration<double>(*how_.limit).count(), last.empty() ? "" : "; it printed: ", last);
    }

    command_output give_up(int status, std::string why) {
        child_->kill_and_reap();
        return {status, std::move(result_.out), std::move(why), steady::now() - start_};
    }

    std::vector<std::string> const& argv_;
    capture_options const& how_;
    std::string_view input_;
    unique_fd in_, out_, err_;
    command_output result_;
    steady::time_point start_;
    std::optional<child> child_;
};

}  // namespace

capture_options foreground() {
    capture_options how;
    how.err_fd = STDERR_FILENO;
    how.own_group = false;
    how.death_signal = SIGTERM;
    return how;
}

command_output run_program(std::vector<std::string> const& argv, environment const& variables, capture_options const& how) {
    expect(!argv.empty(), "a command has a program");
    std::optional<without_sigpipe> guard;
    if (!how.input.empty()) guard.emplace();
    return captured_run(argv, variables, how).finish();
}

command_output run_captured(std::vector<std::string> const& argv, environment const& variables, milliseconds limit) {
    capture_options how;
    how.limit = limit;
    try {
        return run_program(argv, variables, how);
    } catch (program_error const& e) {
        return {e.exit_status(), "", e.what()};
    }
}

}  // namespace muster
