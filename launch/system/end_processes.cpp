#include "launch/system/end_processes.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <set>
#include <utility>

#include "base/process/files.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"
#include "launch/system/cgroup.hpp"
#include "launch/system/process_stat.hpp"

namespace muster {

namespace {

std::vector<std::pair<pid_t, pid_t>> descendants_and_parents(pid_t spared = 0) {
    auto children = living_children();
    std::vector<std::pair<pid_t, pid_t>> found;
    std::vector<pid_t> open{::getpid()};
    while (!open.empty()) {
        auto const parent = open.back();
        open.pop_back();
        for (pid_t const child : children[parent]) {
            if (child == spared) continue;
            found.emplace_back(child, parent);
            open.push_back(child);
        }
    }
    return found;
}

}  // namespace

std::vector<pid_t> descendants() {
    std::vector<pid_t> found;
    for (auto const& [pid, parent] : descendants_and_parents()) found.push_back(pid);
    return found;
}

/// The number may belong to another process by now: so this opens the process, checks it again, and then signals what it has
/// opened. The next round finds a process whose parent died meanwhile, or that this one does not reach in time.
void signal_child(pid_t pid, pid_t parent, int signal_number) noexcept {
    unique_fd const held(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!held && errno == ESRCH) return;
    auto const now = parent_of(pid);
    if (now != parent && now != ::getpid()) return;  // this process is a subreaper
    if (held)
        ::syscall(SYS_pidfd_send_signal, held.get(), signal_number, nullptr, 0);
    else
        ::kill(pid, signal_number);  // for a kernel before 5.3, or without a free descriptor
}

int signal_descendants(int signal_number) noexcept try {
    auto const all = descendants_and_parents();
    for (auto const& [pid, parent] : all) signal_child(pid, parent, signal_number);
    return static_cast<int>(all.size());
} catch (...) {
    return 0;
}

bool is_held(pid_t pid) noexcept try {
    auto const stat = read_process_stat(pid);
    return stat && (stat->state == 'T' || (stat->state != 'R' && is_frozen(pid)));
} catch (...) {
    return false;
}

bool is_stopped(pid_t pid) noexcept {
    auto const stat = read_process_stat(pid);
    return stat && stat->state == 'T';
}

bool is_exiting(pid_t pid) noexcept {
    auto const stat = read_process_stat(pid);
    return !stat || !stat->lives() || stat->is_exiting();
}

bool is_alive(pid_t pid) noexcept {
    auto const stat = read_process_stat(pid);
    return stat && stat->lives();
}

std::string name_of_process(pid_t pid) {
    return std::string(trim(read_text_file("/proc/" + std::to_string(pid) + "/comm")));
}

pid_t parent_of(pid_t pid) noexcept {
    return read_process_stat(pid).value_or(process_status{}).parent;
}

void kill_descendants_called(std::string_view program) noexcept {
    for (auto const& [pid, parent] : descendants_and_parents())
        if (name_of_process(pid) == program) signal_child(pid, parent, SIGKILL);
}

void notify_descendants(int signal_number, noticed whom) noexcept try {
    std::set<pid_t> relayed_by;  // muster-stage, and all below it
    for (auto const& [pid, parent] : descendants_and_parents()) {
        if (relayed_by.contains(parent)) {
            relayed_by.insert(pid);
            continue;
        }
        if (whom == noticed::all || catches_signal(pid, signal_number)) signal_child(pid, parent, signal_number);
        if (name_of_process(pid) == "muster-stage") relayed_by.insert(pid);
    }
} catch (...) {
}

void end_descendants(int signal_number) noexcept {
    signal_descendants(signal_number);
    signal_descendants(SIGCONT);
}

duration wait_before_kill(int signal_number, std::optional<event_loop::clock::time_point> grace_ends,
                          event_loop::clock::time_point now) noexcept {
    if (signal_number != SIGTERM || !grace_ends) return leftover_patience;
    return std::max<duration>(leftover_patience, *grace_ends - now);
}

void set_grace_timers(event_loop& loop, int signal_number, duration grace, std::function<void()> terminate,
                      std::function<void()> kill) {
    if (signal_number == SIGINT) loop.after(grace / 2, std::move(terminate));
    loop.after(grace, std::move(kill));
}

namespace {

std::size_t kill_descendants_but(pid_t spared) noexcept try {
    auto const all = descendants_and_parents(spared);
    for (auto const& [pid, parent] : all) signal_child(pid, parent, SIGKILL);
    return all.size();
} catch (...) {
    return 0;
}

}  // namespace

void reap_within(pid_t child, duration most) noexcept {
    auto const end = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(most);
    timespec const pause{0, 1'000'000};
    while (::waitpid(child, nullptr, WNOHANG) == 0 && event_loop::clock::now() < end) ::nanosleep(&pause, nullptr);
}

void kill_all_descendants(pid_t spared, duration most) noexcept {
    auto const end = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(most);
    // A process may fork while the list is read, hence the loop; each round waits for deaths, not for time.
    do {
        pid_t reaped = 0;
        while ((reaped = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
        }
        if (reaped < 0 && errno == ECHILD) return;  // orphans of descendants would be children of this subreaper
        if (kill_descendants_but(spared) == 0) return;
        sigset_t child;
        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        timespec const at_most{0, 5'000'000};
        ::sigtimedwait(&child, nullptr, &at_most);
    } while (event_loop::clock::now() < end);
}

}  // namespace muster
