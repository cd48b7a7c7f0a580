#include "launch/shim/shim_guard.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>

#include "base/error.hpp"
#include "launch/system/end_processes.hpp"
#include "launch/system/session_dir.hpp"
#include "launch/system/signal_table.hpp"
#include "launch/system/signals.hpp"

namespace muster {

namespace {

sigset_t guarded_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (int const s : taken_signals(process_kind::shim_guard)) sigaddset(&set, s);
    return set;
}

/// Does not stop itself: while it stands at this place, stopped by its daemon, SIGCONT may come, and no other would follow.
void pass_on(pid_t shim, int signal_number) {
    if (signal_number == SIGTSTP) return void(::kill(-shim, SIGSTOP));  // its group is its rank's too
    ::kill(signal_number == SIGCONT ? -shim : shim, signal_number);
}

int wait_for_shim(pid_t shim, pid_t daemon) {
    sigset_t const set = guarded_signals();
    for (;;) {
        int const s = ::sigwaitinfo(&set, nullptr);
        if (s > 0 && s != SIGCHLD) pass_on(shim, s);
        if (s == SIGHUP && ::getppid() != daemon) ::kill(shim, SIGCONT);  // it may be stopped, and must see that
        if (s != SIGCHLD) continue;
        int any = 0;
        for (pid_t pid; (pid = ::waitpid(-1, &any, WNOHANG)) > 0;)
            if (pid == shim) return any;
    }
}

}  // namespace

shim_parents own_parents() {
    pid_t const daemon = ::getppid();
    return {daemon, name_of_process(daemon), 0};
}

int run_behind_guard(std::function<int(shim_parents const&)> const& shim) {
    ::signal(SIGCHLD, SIG_DFL);
    std::time_t const started = std::time(nullptr);
    auto parents = own_parents();
    parents.guard = ::getpid();
    sigset_t const set = guarded_signals();
    ::sigprocmask(SIG_BLOCK, &set, nullptr);  // the child takes them by itself
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::prctl(PR_SET_PDEATHSIG, SIGHUP);
    std::fflush(nullptr);
    pid_t const child = ::fork();
    if (child < 0) throw_system("fork", "the rank shim", errno, "raise the limit of processes with ulimit -u");
    if (child == 0) {
        ::setsid();
        int const code = shim(parents);
        std::fflush(nullptr);
        ::_exit(code);
    }
    int const status = wait_for_shim(child, parents.daemon);
    if (::waitpid(-1, nullptr, WNOHANG) >= 0) kill_all_descendants();  // else there is no child
    if (WIFSIGNALED(status)) sweep_shared_memory(started);
    return shell_code(status);
}

}  // namespace muster
