#include "launch/observe/process_sight.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/process/files.hpp"
#include "base/process/run_captured.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "launch/observe/working_process.hpp"
#include "launch/system/process_stat.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_line = 160;

/// Lists the calls in which programs wait. Their numbers differ among kinds of processors.
constexpr std::pair<long, std::string_view> waiting_calls[]{
#ifdef SYS_poll
    {SYS_poll, "poll"},
    {SYS_select, "select"},
    {SYS_epoll_wait, "epoll_wait"},
    {SYS_pause, "pause"},
#endif
    {SYS_futex, "futex"},
    {SYS_ppoll, "ppoll"},
    {SYS_pselect6, "pselect"},
    {SYS_epoll_pwait, "epoll_wait"},
    {SYS_read, "read"},
    {SYS_readv, "readv"},
    {SYS_pread64, "pread"},
    {SYS_write, "write"},
    {SYS_writev, "writev"},
    {SYS_pwrite64, "pwrite"},
    {SYS_recvfrom, "recv"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_sendto, "send"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_connect, "connect"},
    {SYS_accept, "accept"},
    {SYS_accept4, "accept"},
    {SYS_wait4, "wait"},
    {SYS_waitid, "wait"},
    {SYS_nanosleep, "sleep"},
    {SYS_clock_nanosleep, "sleep"},
    {SYS_flock, "flock"},
    {SYS_fcntl, "fcntl"},
    {SYS_fsync, "fsync"},
    {SYS_openat, "open"},
    {SYS_ioctl, "ioctl"},
    {SYS_rt_sigtimedwait, "sigwait"},
    {SYS_rt_sigsuspend, "sigsuspend"},
    {SYS_semtimedop, "semop"},
    {SYS_sched_yield, "sched_yield"},
};

std::string read_of(pid_t pid, char const* name) {
    return read_text_file(fmt::format("/proc/{}/{}", pid, name));
}

/// Returns the inodes of the sockets that this process has open.
std::vector<unsigned long> sockets_of(pid_t pid) {
    std::vector<unsigned long> inodes;
    std::error_code fault;
    for (auto const& entry : folder_entries(fmt::format("/proc/{}/fd", pid))) {
        auto const target = fs::read_symlink(entry, fault).string();
        if (target.starts_with("socket:[")) inodes.push_back(std::strtoul(target.c_str() + 8, nullptr, 10));
    }
    return inodes;
}

std::optional<int> port_of(std::string_view address) {
    auto const colon = address.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    int port = 0;
    auto const digits = address.substr(colon + 1);
    auto const [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), port, 16);
    return fault == std::errc() ? std::optional(port) : std::nullopt;
}

}  // namespace

std::string name_of_call(std::string_view syscall) {
    auto const number = parse_integer(syscall.substr(0, syscall.find(' ')));  // "running" is no number
    if (!number) return {};
    for (auto const& [call, name] : waiting_calls)
        if (call == *number) return std::string(name);
    return {};
}

std::string place_of_sleep(pid_t pid) {
    if (auto call = name_of_call(read_of(pid, "syscall")); !call.empty()) return call;
    auto const function = read_of(pid, "wchan");
    return function == "0" ? std::string() : function;
}

std::vector<unsigned long> sockets_at_port(std::string_view net_tcp, int port) {
    constexpr std::string_view established = "01", listening = "0A";
    std::vector<unsigned long> inodes;
    for (auto const line : split(net_tcp, '\n')) {
        std::vector<std::string_view> words;
        for (auto const word : split(line, ' '))
            if (!word.empty()) words.push_back(word);
        if (words.size() < 10) continue;
        bool const there =
            (words[3] == established && port_of(words[2]) == port) || (words[3] == listening && port_of(words[1]) == port);
        if (auto const inode = parse_integer(words[9]); there && inode) inodes.push_back(static_cast<unsigned long>(*inode));
    }
    return inodes;
}

std::string describe_state(process_sight const& sight) {
    auto const with_place = [&](char const* what) {
        return sight.where.empty() ? what : fmt::format("{} in {}", what, sight.where);
    };
    switch (sight.state) {
        case 'R': return "running";
        case 'S':
        case 'I': return with_place("asleep");
        case 'D': return with_place("in an uninterruptible wait");
        case 'T': return "stopped";
        case 't': return "stopped by a debugger";
        case 'Z':
        case 'X': return "ended";
        default: return "in an unknown state";
    }
}

void add_output(process_sight& sight, std::string_view last_lines, double silent_s) {
    auto const lines = split(trim(last_lines), '\n');
    sight.silent_s = silent_s;
    sight.last_line = std::string(lines.back().substr(0, longest_line));
    sight.traceback = last_lines.find("Traceback (most recent call last)") != std::string_view::npos;
}

process_table::process_table() {
    for (pid_t const pid : list_processes()) {
        auto const stat = read_process_stat(pid);
        if (!stat) continue;
        // A signal that ends a process becomes a pending SIGKILL in each of its threads.
        bool const leaving = stat->is_exiting() || holds_signal(stat->pending, SIGKILL);
        entries_.emplace(pid, entry{stat->state, leaving, static_cast<double>(stat->cpu_ticks()) / ticks_per_s()});
        if (stat->lives()) children_[stat->parent].push_back(pid);
    }
}

std::vector<pid_t> process_table::tree_of(pid_t root) const {
    std::vector<pid_t> tree{root};
    for (std::size_t i = 0; i < tree.size(); ++i)
        for (pid_t const child : children_of(tree[i])) tree.push_back(child);
    return tree;
}

pid_t process_table::working_process(pid_t rank) const {
    return muster::working_process(rank, [this](pid_t parent) { return children_of(parent); });
}

std::vector<pid_t> process_table::children_of(pid_t parent) const {
    auto const found = children_.find(parent);
    return found == children_.end() ? std::vector<pid_t>() : found->second;
}

process_sight process_table::inspect(pid_t rank, int port) const {
    process_sight sight;
    auto const found = entries_.find(rank);
    if (found == entries_.end()) return sight;
    auto const pid = working_process(rank);
    sight.pid = pid;
    sight.state = entries_.at(pid).state;
    sight.leaving = entries_.at(pid).leaving;
    if (sight.state != 'R') sight.where = place_of_sleep(pid);
    auto const tree = tree_of(rank);
    for (auto const each : tree) {
        sight.cpu_s += entries_.at(each).cpu_s;
        sight.caught |= caught_signals(each);
    }
    if (port <= 0) return sight;
    std::vector<unsigned long> held;
    for (auto const each : tree)
        for (auto const inode : sockets_of(each)) held.push_back(inode);
    if (held.empty()) return sight;
    auto const& wanted = sockets_at(pid, port);
    sight.at_port = std::ranges::any_of(held, [&](auto inode) { return std::ranges::find(wanted, inode) != wanted.end(); });
    return sight;
}

/// With many short-lived connections the kernel takes a good part of a second for its list of them, and mostly all ranks of a
/// node share it.
std::vector<unsigned long> const& process_table::sockets_at(pid_t pid, int port) const {
    std::error_code fault;
    auto const network = fs::read_symlink(fmt::format("/proc/{}/ns/net", pid), fault).string();
    auto const [known, is_new] = sockets_.try_emplace({fault ? std::to_string(pid) : network, port});
    if (is_new)
        for (auto const* list : {"net/tcp", "net/tcp6"})
            for (auto const inode : sockets_at_port(read_of(pid, list), port)) known->second.push_back(inode);
    return known->second;
}

namespace {

constexpr std::string_view placeholder = "{pid}";
constexpr std::size_t longest_answer = 64u << 10;

}  // namespace

std::string ask_about(std::string const& command, long pid, environment const& variables, std::chrono::milliseconds limit) {
    auto filled = command;
    for (auto at = filled.find(placeholder); at != std::string::npos; at = filled.find(placeholder, at))
        filled.replace(at, placeholder.size(), std::to_string(pid));
    capture_options how;
    how.limit = limit;
    how.output_limit = longest_answer;  // a command that goes on printing is ended there
    auto const answer = run_program({"/bin/sh", "-c", "exec 2>&1\n" + filled}, variables, how);
    auto said = answer.out;
    bool const cut = said.size() > longest_answer;
    if (cut) said.resize(longest_answer);
    if (!said.empty() && said.back() != '\n') said += '\n';
    if (cut)
        said += fmt::format("--on-hang: ended after the first {} KiB\n", longest_answer >> 10);
    else if (answer.exit_status == 124)
        said += fmt::format("--on-hang: no end within {}\n", format_duration(duration(limit)));
    else if (answer.exit_status != 0)
        said += fmt::format("--on-hang: exit code {}\n", answer.exit_status);
    return said;
}

}  // namespace muster
