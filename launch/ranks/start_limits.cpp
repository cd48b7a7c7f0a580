#include "launch/ranks/start_limits.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/process/files.hpp"
#include "base/process/kernel_files.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t other_files = 64;  // the number that the launcher itself needs

std::optional<std::uint64_t> number_in(fs::path const& path) {
    return parse_count(read_text_file(path.string()));
}

std::uint64_t limit_of(decltype(RLIMIT_NOFILE) which) {
    rlimit found{};
    if (::getrlimit(which, &found) != 0 || found.rlim_cur == RLIM_INFINITY) return start_limits::none;
    return found.rlim_cur;
}

/// Returns the least that any group from this one up to the root leaves.
std::uint64_t left_from(fs::path group, fs::path const& root) {
    auto left = start_limits::none;
    for (;; group = group.parent_path()) {
        auto const most = number_in(group / "pids.max");
        auto const now = number_in(group / "pids.current");
        if (most && now) left = std::min(left, *most - std::min(*most, *now));
        if (group == root || !group.has_relative_path()) return left;
    }
}

}  // namespace

std::uint64_t processes_left_in_cgroups(std::string_view cgroups, std::string const& root) {
    auto left = start_limits::none;
    for (auto const line : split(cgroups, '\n')) {
        auto const fields = split(line, ':');
        if (fields.size() != 3 || fields[2].empty()) continue;
        auto const controllers = split(fields[1], ',');
        bool const has_pids = std::ranges::find(controllers, "pids") != controllers.end();
        if (!fields[1].empty() && !has_pids) continue;
        fs::path const mount = fields[1].empty() ? fs::path(root) : fs::path(root) / "pids";
        left = std::min(left, left_from((mount / std::string(fields[2].substr(1))).lexically_normal(), mount));
    }
    return left;
}

start_limits read_start_limits() {
    start_limits limits;
    limits.open_files = limit_of(RLIMIT_NOFILE);
    if (::geteuid() != 0) limits.processes_of_user = limit_of(RLIMIT_NPROC);
    limits.processes = std::min(number_in("/proc/sys/kernel/pid_max").value_or(start_limits::none),
                                number_in("/proc/sys/kernel/threads-max").value_or(start_limits::none));
    limits.processes_of_job = processes_left_in_cgroups(read_text_file("/proc/self/cgroup"), "/sys/fs/cgroup");
    return limits;
}

std::optional<std::string> limit_fault(int ranks, int files_a_rank, start_limits const& limits) {
    auto const count = static_cast<std::uint64_t>(ranks);
    auto const fault = [&](std::uint64_t needed, std::string_view of_what, std::uint64_t most, std::string_view name) {
        return fmt::format("{} ranks need {} {} on this node, and {} allows {}; start fewer, or raise it", ranks, needed, of_what,
                           name, most);
    };
    auto const files = count * static_cast<std::uint64_t>(files_a_rank) + other_files;
    if (files > limits.open_files) return fault(files, "open files", limits.open_files, "the limit of open files (ulimit -n)");
    if (count > limits.processes_of_user)
        return fault(count, "processes", limits.processes_of_user, "the user's limit of processes (ulimit -u)");
    if (count > limits.processes_of_job)
        return fault(count, "processes", limits.processes_of_job, "the control group (pids.max, less those that run)");
    if (count > limits.processes)
        return fault(count, "processes", limits.processes, "the kernel (kernel.pid_max, kernel.threads-max)");
    return std::nullopt;
}

std::vector<soft_limit> read_own_limits() {
    std::vector<soft_limit> limits;
    for (int const which : {RLIMIT_CORE, RLIMIT_STACK, RLIMIT_NOFILE, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_MEMLOCK, RLIMIT_AS,
                            RLIMIT_CPU, RLIMIT_NPROC}) {
        rlimit now{};
        if (::getrlimit(which, &now) == 0) limits.push_back({which, now.rlim_cur});
    }
    return limits;
}

int read_umask() {
    mode_t const mask = ::umask(0);
    ::umask(mask);
    return static_cast<int>(mask);
}

}  // namespace muster
