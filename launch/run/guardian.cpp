#include "launch/run/guardian.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <utility>

#include "base/command/command_set.hpp"
#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/process/this_process.hpp"
#include "base/unique_fd.hpp"
#include "launch/system/end_processes.hpp"
#include "launch/system/open_files.hpp"
#include "launch/system/session_dir.hpp"
#include "launch/system/signal_table.hpp"
#include "launch/system/signals.hpp"

namespace muster {

namespace {

/// This is added to the ranks' grace: a launcher takes signals at almost any time.
constexpr duration time_to_answer{5};
/// These hold after a second request to end.
constexpr duration time_to_answer_again{0.7}, time_for_rest{0.2};
/// This is added to --timeout: in it the ranks are inspected, perhaps by --on-hang, asked to end and killed.
constexpr duration time_beyond_timeout{30};
constexpr duration time_to_die{5};

using clock = std::chrono::steady_clock;

clock::time_point after(duration time) {
    return clock::now() + std::chrono::duration_cast<clock::duration>(time);
}

/// Allows two pipes for each rank and connections to the launcher, for some 1,000 ranks: 32 KiB in the kernel.
constexpr std::size_t usual_open_files = 4096;

sigset_t guarded_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (int const s : taken_signals(process_kind::guardian))
        if (!is_ignored(s)) sigaddset(&set, s);
    return set;
}

/// Returns the signals that are blocked when a launcher starts: the guardian's, and those that would end a launcher which cannot
/// handle them yet. A later launcher may take seconds to get there.
sigset_t signals_of_launchers(sigset_t const& own) {
    sigset_t set = own;
    for (int const s : signals_to_hold()) sigaddset(&set, s);
    return set;
}

/// Reaps every child that has ended. Returns true, with its status, if the launcher is one of them.
bool reap_until_launcher(pid_t launcher, int& status) {
    int any = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &any, WNOHANG)) > 0;) {
        if (pid != launcher) continue;
        status = any;
        return true;
    }
    return false;
}

/// Passes on signals that only this process got. A signal from the terminal, or to the whole group, has reached the launcher,
/// too; it ignores the second one (signal_requests). A terminal that closes sends SIGHUP only to the leader of its session, which
/// this process may be.
void pass_on(pid_t launcher, siginfo_t const& info) {
    if (info.si_signo == SIGTSTP) {
        ::kill(launcher, SIGTSTP);
        ::raise(SIGSTOP);
        return;
    }
    if (info.si_code != SI_KERNEL || info.si_signo == SIGCONT || info.si_signo == SIGHUP) ::kill(launcher, info.si_signo);
}

/// Returns whether a request to end is pending that the launcher has not taken. Its loop takes signals, so a launcher with a
/// long-pending one stands still.
bool still_waits(pid_t launcher) {
    auto const waiting = signals_in_status(launcher, "SigPnd:") | signals_in_status(launcher, "ShdPnd:");
    auto const all = taken_signals(process_kind::guardian);
    return std::ranges::any_of(all, [waiting](int s) { return ends_the_run(s) && holds_signal(waiting, s); });
}

/// Holds the request to end that the launcher has not answered yet.
class open_request {
  public:
    void note(int signal_number, duration patience) {
        auto const due = after(patience);
        if (signal_ != 0 && due_ <= due) return;
        signal_ = signal_number;
        due_ = due;
    }

    std::optional<clock::time_point> due() const { return signal_ == 0 ? std::nullopt : std::optional(due_); }

    /// Returns the signal if it is overdue and still pending for the launcher; else 0. Forgets a signal that was taken.
    int unanswered(pid_t launcher) {
        if (signal_ == 0 || clock::now() < due_) return 0;
        int const overdue = std::exchange(signal_, 0);
        return still_waits(launcher) ? overdue : 0;
    }

  private:
    int signal_ = 0;
    clock::time_point due_{};
};

/// Prints it if somebody reads within the patience: what ends the run must not wait for the reader of its messages.
void print_if_read(std::string const& line, int patience_ms = 100) {
    pollfd here{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&here, 1, patience_ms) == 1) fmt::print(stderr, "muster: {}\n", line);
}

/// Says how a launcher has ended.
struct launcher_end {
    int status = 0;
    int code = 0;      ///< the run's, if the guardian killed the launcher
    int asked = 0;     ///< the signal that asked the run to end
    int requests = 0;  ///< the number of those signals
};

/// Waits for one launcher and kills it if it stands still, so that a request to end always ends the run.
class launcher_watch {
  public:
    launcher_watch(pid_t launcher, duration grace, std::optional<clock::time_point> late)
        : launcher_(launcher), patience_(grace + time_to_answer), late_(late) {}

    launcher_end wait() {
        sigset_t const set = guarded_signals();
        for (;;) {
            siginfo_t info{};
            auto const left = time_left();
            if (::sigtimedwait(&set, &info, left ? &*left : nullptr) < 0) {  // EAGAIN, or EINTR after SIGSTOP and SIGCONT
                if (look()) return end_;
            } else if (info.si_signo == SIGCHLD) {
                if (reap_until_launcher(launcher_, end_.status)) return end_;
            } else {
                take(info);
            }
        }
    }

  private:
    void take(siginfo_t const& info) {
        pass_on(launcher_, info);
        if (!ends_the_run(info.si_signo) || requests_.is_repeat(info.si_signo)) return;
        if (++end_.requests == 1) end_.asked = info.si_signo;
        request_.note(info.si_signo, end_.requests == 1 ? patience_ : time_to_answer_again);
    }

    std::optional<timespec> time_left() const {
        auto due = request_.due();
        for (auto const& one : {late_, killed_until_})
            if (one && (!due || *one < *due)) due = one;
        if (!due) return std::nullopt;
        auto const left = std::max(std::chrono::nanoseconds(*due - clock::now()), std::chrono::nanoseconds(0)).count();
        return timespec{left / 1'000'000'000, left % 1'000'000'000};
    }

    /// Returns whether to stop waiting for the launcher.
    bool look() {
        auto const now = clock::now();
        if (killed_until_ && now >= *killed_until_) {  // not even SIGKILL ends it
            end_.status = SIGKILL;
            return true;
        }
        if (int const overdue = request_.unanswered(launcher_); overdue != 0)
            kill(128 + overdue, fmt::format("the launcher did not answer SIG{} within {}", signal_name(overdue),
                                            format_duration(end_.requests <= 1 ? patience_ : time_to_answer_again)));
        if (late_ && now >= *late_) {
            bool const stood_still = now - *late_ > time_to_answer;  // this process stood still, too
            late_ = stood_still ? std::optional(after(time_beyond_timeout)) : std::nullopt;
            if (!stood_still) kill(exit_code(errc::timeout), "the launcher still stands after --timeout");
        }
        return false;
    }

    void kill(int code, std::string const& why) {
        if (killed_until_) return;
        end_.code = code;
        killed_until_ = after(time_to_die);
        ::kill(launcher_, SIGKILL);
        print_if_read(fmt::format("error: {}; killing it and its ranks", why));
    }

    pid_t launcher_;
    duration patience_;
    std::optional<clock::time_point> late_, killed_until_{};
    open_request request_;
    signal_requests requests_;
    launcher_end end_;
};

/// Waits between two launchers. Returns the signal that asked the run to end, or 0 after `delay`.
int wait_for_next(duration delay) {
    sigset_t const set = guarded_signals();
    auto const end = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(delay);
    for (;;) {
        auto const left = std::chrono::nanoseconds(end - std::chrono::steady_clock::now()).count();
        timespec const patience{std::max<std::int64_t>(left, 0) / 1'000'000'000, std::max<std::int64_t>(left, 0) % 1'000'000'000};
        int const s = ::sigtimedwait(&set, nullptr, &patience);
        if (s < 0 && left <= 0) return 0;
        if (s == SIGTSTP) ::raise(SIGSTOP);
        if (s > 0 && ends_the_run(s)) return s;
    }
}

/// Holds the order that a launcher has left.
struct next_launcher {
    duration delay{0};
    std::string life;
};

std::optional<next_launcher> read_next(int next_fd) {
    std::string text(static_cast<std::size_t>(std::max<off_t>(::lseek(next_fd, 0, SEEK_END), 0)), '\0');
    for (std::size_t done = 0; done < text.size();) {
        auto const n = ::pread(next_fd, text.data() + done, text.size() - done, static_cast<off_t>(done));
        if (n <= 0) return std::nullopt;
        done += static_cast<std::size_t>(n);
    }
    auto const newline = text.find('\n');
    if (newline == std::string::npos) return std::nullopt;
    return next_launcher{duration(std::strtod(text.c_str(), nullptr)), text.substr(newline + 1)};
}

/// Runs one launcher, from its start until none of its processes is left.
launcher_end run_launcher(launcher_start start, duration grace, std::optional<clock::time_point> late,
                          std::vector<std::string> const& places, sigset_t const& unguarded,
                          std::function<int(launcher_start const&)> const& launcher) {
    std::time_t const started = std::time(nullptr);
    unique_fd session_lock;  // the launcher inherits it: the folder is in use while one of the two lives
    std::string const session_dir = start.session_dir = make_session_dir(session_lock, places);
    // The launcher notices its guardian's death as the end of this pipe.
    auto [death_read, death_write] = make_pipe();
    std::fflush(nullptr);
    pid_t const guardian = ::getpid();
    pid_t const child = ::fork();
    if (child < 0) {
        int const code = errno;
        remove_session_dir(session_dir);
        throw_system("fork", "the launcher", code, "raise the limit of processes with ulimit -u");
    }
    if (child == 0) {
        death_write.reset();
        start.guardian_fd = death_read.get();
        ::prctl(PR_SET_PDEATHSIG, SIGCONT);  // a stopped launcher must see that end, too
        make_room_for_open_files(usual_open_files);
        end_phase("session folder made, launcher forked");
        ::sigprocmask(SIG_SETMASK, &unguarded, nullptr);  // from now on a request to end may end the launcher
        int const code = finish_output("muster", launcher(start));
        end_phase("servers ended");
        std::fflush(nullptr);
        if (::getppid() != guardian) remove_session_dir(session_dir);  // the guardian is gone
        ::_exit(code);                                                 // no static destructors: libraries' threads may still run
    }
    death_read.reset();
    sweep_session_dirs(places);  // while the launcher starts
    auto const end = launcher_watch(child, grace, late).wait();
    kill_all_descendants(start.kept != nullptr ? start.kept->leader() : 0, end.requests > 1 ? time_for_rest : time_to_die);
    remove_session_dir(session_dir);
    end_phase("guardian: launcher ended, nothing left");
    if (WIFEXITED(end.status)) return end;
    if (end.code == 0) print_if_read(fmt::format("the launcher {}; ended its ranks", describe_end(end.status)), 5000);
    sweep_shared_memory(started);
    return end;
}

}  // namespace

void leave_next(int next_fd, duration delay, std::string const& life) {
    write_all(next_fd, fmt::format("{}\n{}", delay.count(), life), "the order for the next generation");
}

int run_guarded(duration grace, std::vector<std::string> const& session_places,
                std::function<int(launcher_start const&)> const& launcher, state_keeping* kept, std::optional<duration> timeout) {
    auto const late = timeout ? std::optional(after(*timeout + 2 * grace + time_beyond_timeout)) : std::nullopt;
    // Some daemons leave SIGCHLD ignored; the kernel would then never report a child's end.
    ::signal(SIGCHLD, SIG_DFL);
    sigset_t const set = guarded_signals();
    sigset_t before;
    ::sigprocmask(SIG_BLOCK, &set, &before);
    sigset_t const unguarded = signals_of_launchers(before);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    struct at_end {
        state_keeping* kept;
        ~at_end() {
            if (kept == nullptr || kept->leader() == 0) return;
            kept->end();
            kill_all_descendants();
        }
    } const last{kept};
    for (launcher_start start;;) {
        unique_fd const next_fd(::memfd_create("muster-next", MFD_CLOEXEC));
        if (!next_fd) throw_system("memfd_create", "for the next generation");
        start.next_fd = next_fd.get();
        start.kept = kept;
        auto const end = run_launcher(start, grace, late, session_places, unguarded, launcher);
        if (!WIFEXITED(end.status)) return end.code != 0 ? end.code : 128 + WTERMSIG(end.status);
        auto const next = read_next(next_fd.get());
        if (!next) return WEXITSTATUS(end.status);
        int const asked = end.asked != 0 ? end.asked : wait_for_next(next->delay);
        if (asked != 0) {
            print_if_read(fmt::format("got SIG{} between two generations", signal_name(asked)));
            return 128 + asked;
        }
        start.life = next->life;
    }
}

}  // namespace muster
