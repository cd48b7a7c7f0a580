#include "launch/run/guardian.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "launch/system/end_processes.hpp"
#include "launch/system/session_dir.hpp"
#include "launch/system/signals.hpp"

namespace muster {

namespace {

constexpr std::array passed_on{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP, SIGCONT};

sigset_t guarded_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (int const s : passed_on)
        if (!is_ignored(s)) sigaddset(&set, s);
    sigaddset(&set, SIGCHLD);
    return set;
}

/// Reaps everything that has ended; true, with its status, once the launcher is among it.
bool reap_until_launcher(pid_t launcher, int& status) {
    int any = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &any, WNOHANG)) > 0;) {
        if (pid != launcher) continue;
        status = any;
        return true;
    }
    return false;
}

/// Passes on what was sent to this process alone. What came from the terminal or to the whole group has reached the launcher too,
/// since it is in the same group; it ignores the second one (signal_requests).
void pass_on(pid_t launcher, siginfo_t const& info) {
    if (info.si_signo == SIGTSTP) {
        ::kill(launcher, SIGTSTP);
        ::raise(SIGSTOP);
        return;
    }
    if (info.si_code != SI_KERNEL || info.si_signo == SIGCONT) ::kill(launcher, info.si_signo);
}

int wait_for_launcher(pid_t launcher) {
    sigset_t const set = guarded_signals();
    int status = 0;
    for (;;) {
        siginfo_t info{};
        if (::sigwaitinfo(&set, &info) < 0) continue;  // EINTR, by SIGSTOP and SIGCONT
        if (info.si_signo == SIGCHLD) {
            if (reap_until_launcher(launcher, status)) return status;
        } else {
            pass_on(launcher, info);
        }
    }
}

}  // namespace

int run_guarded(std::function<int(std::string const&, int)> const& launcher) {
    // Inherited as ignored, as some daemons leave it, the kernel would never tell of a child that ended.
    ::signal(SIGCHLD, SIG_DFL);
    std::time_t const started = std::time(nullptr);
    sweep_session_dirs();
    unique_fd session_lock;  // the launcher inherits it: the folder is in use as long as one of the two lives
    std::string const session_dir = make_session_dir(session_lock);
    sigset_t const set = guarded_signals();
    sigset_t before;
    ::sigprocmask(SIG_BLOCK, &set, &before);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    // The launcher sees its guardian die as the end of this pipe.
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
        ::sigprocmask(SIG_SETMASK, &before, nullptr);
        int const code = launcher(session_dir, death_read.get());
        std::fflush(nullptr);
        if (::getppid() != guardian) remove_session_dir(session_dir);  // the guardian cannot
        ::_exit(code);                                                 // no static destructors: libraries' threads may still run
    }
    death_read.reset();
    int const status = wait_for_launcher(child);
    kill_all_descendants();
    remove_session_dir(session_dir);
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    std::fprintf(stderr, "muster: the launcher was killed by signal %d; ended its ranks\n", WTERMSIG(status));
    sweep_shared_memory(started);
    return 128 + WTERMSIG(status);
}

}  // namespace muster
