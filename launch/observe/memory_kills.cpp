#include "launch/observe/memory_kills.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "base/process/files.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

/// The path of the cgroup behind "4:memory:/job" (version 1) or "0::/job" (version 2).
std::optional<std::string_view> cgroup_path(std::string_view cgroup, bool first_version) {
    for (auto const line : split(cgroup, '\n')) {
        auto const fields = split(line, ':');
        if (fields.size() < 3) continue;
        auto const path = line.substr(fields[0].size() + fields[1].size() + 2);
        if (!first_version && fields[0] == "0" && fields[1].empty()) return path;
        if (!first_version) continue;
        for (auto const controller : split(fields[1], ','))
            if (controller == "memory") return path;
    }
    return std::nullopt;
}

/// Where `path` of that hierarchy lies in this process' files: fields of mountinfo are described in proc(5).
std::string locate(std::string_view mountinfo, std::string_view type, std::string_view option, std::string_view path) {
    for (auto const line : split(mountinfo, '\n')) {
        auto const bar = line.find(" - ");
        if (bar == std::string_view::npos) continue;
        auto const behind = split(line.substr(bar + 3), ' ');
        auto const before = split(line.substr(0, bar), ' ');
        if (behind.size() < 3 || before.size() < 5 || behind[0] != type) continue;
        bool has = option.empty();
        for (auto const word : split(behind[2], ',')) has = has || word == option;
        if (!has) continue;
        auto const root = before[3] == "/" ? std::string_view() : before[3];
        if (path.starts_with(root)) path.remove_prefix(root.size());
        return fmt::format("{}{}", before[4], path == "/" ? "" : path);
    }
    return {};
}

bool shm_is_full() noexcept {
    struct statvfs info {};
    return ::statvfs("/dev/shm", &info) == 0 && static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize < least_shm_bytes;
}

}  // namespace

std::string find_memory_events(std::string_view cgroup, std::string_view mountinfo) {
    if (auto const path = cgroup_path(cgroup, true)) {
        auto const folder = locate(mountinfo, "cgroup", "memory", *path);
        return folder.empty() ? "" : folder + "/memory.oom_control";
    }
    if (auto const path = cgroup_path(cgroup, false)) {
        auto const folder = locate(mountinfo, "cgroup2", "", *path);
        return folder.empty() ? "" : folder + "/memory.events";
    }
    return {};
}

std::optional<long> find_count(std::string_view text, std::string_view key) {
    for (auto const line : split(text, '\n'))
        if (line.size() > key.size() + 1 && line.starts_with(key) && line[key.size()] == ' ')
            if (auto const number = parse_integer(trim(line.substr(key.size() + 1)))) return static_cast<long>(*number);
    return std::nullopt;
}

memory_kills count_memory_kills() {
    memory_kills kills;
    kills.on_node = find_count(read_text_file("/proc/vmstat"), "oom_kill");
    if (auto const file = find_memory_events(read_text_file("/proc/self/cgroup"), read_text_file("/proc/self/mountinfo"));
        !file.empty())
        kills.in_cgroup = find_count(read_text_file(file), "oom_kill");
    return kills;
}

memory_verdict compare(memory_kills const& before, memory_kills const& after) noexcept {
    if (before.in_cgroup && after.in_cgroup && *after.in_cgroup > *before.in_cgroup) return memory_verdict::in_cgroup;
    if (!before.on_node || !after.on_node) return memory_verdict::unknown;
    return *after.on_node > *before.on_node ? memory_verdict::on_node : memory_verdict::none;
}

memory_verdict memory_verdict_of(int wait_status, memory_kills const& before) {
    if (wait_status == 0) return memory_verdict::unknown;
    auto const verdict = compare(before, count_memory_kills());
    bool const killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
    bool const of_memory = verdict == memory_verdict::in_cgroup || verdict == memory_verdict::on_node;
    return !killed && !of_memory && shm_is_full() ? memory_verdict::shm_full : verdict;
}

}  // namespace muster
