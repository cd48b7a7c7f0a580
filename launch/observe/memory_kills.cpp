#include "launch/observe/memory_kills.hpp"

#include <signal.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "base/process/files.hpp"
#include "base/process/kernel_files.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

bool shm_is_full() noexcept {
    struct statvfs info {};
    return ::statvfs("/dev/shm", &info) == 0 && static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize < least_shm_bytes;
}

}  // namespace

std::string find_memory_events(std::string_view cgroup, std::string_view mountinfo) {
    auto const place = find_cgroup(cgroup, mountinfo, "memory");
    return place ? place->folder + (place->first_version ? "/memory.oom_control" : "/memory.events") : std::string();
}

bool has_memory_limit(cgroup_place const& place, std::function<std::string(std::string const& path)> const& read) {
    constexpr std::int64_t no_limit = std::int64_t{1} << 62;  // version 1 writes the largest number of whole pages
    bool seen = false;
    for (auto const& folder : place.folders()) {
        auto const said = read(folder + (place.first_version ? "/memory.limit_in_bytes" : "/memory.max"));
        auto const text = trim(std::string_view(said));
        seen = seen || !text.empty();
        if (auto const bytes = parse_integer(text); bytes && *bytes < no_limit) return true;
    }
    return !seen;
}

std::optional<long> count_limit_hits(cgroup_place const& place, std::function<std::string(std::string const& path)> const& read) {
    std::optional<long> hits;
    for (auto const& folder : place.folders())
        if (auto const here = place.first_version ? parse_count(read(folder + "/memory.failcnt"))
                                                  : count_in(read(folder + "/memory.events"), "oom"))
            hits = hits.value_or(0) + static_cast<long>(*here);
    return hits;
}

bool has_hidden_cgroups(cgroup_place const& place, std::function<std::string(std::string const& path)> const& read) {
    // The root alone has this file in version 1, and has no limit file in version 2.
    if (place.first_version) return read(place.root + "/cgroup.sane_behavior").empty();
    return !read(place.root + "/memory.max").empty();
}

memory_kills count_memory_kills() {
    memory_kills kills;
    kills.on_node = count_in(read_text_file("/proc/vmstat"), "oom_kill");
    auto const cgroup = read_text_file("/proc/self/cgroup"), mountinfo = read_text_file("/proc/self/mountinfo");
    if (auto const file = find_memory_events(cgroup, mountinfo); !file.empty())
        kills.in_cgroup = count_in(read_text_file(file), "oom_kill");
    if (auto const place = find_cgroup(cgroup, mountinfo, "memory")) {
        auto const read = [](std::string const& path) { return read_text_file(path); };
        kills.unlimited = !has_memory_limit(*place, read);
        kills.limit_hits = count_limit_hits(*place, read);
        kills.hidden_above = has_hidden_cgroups(*place, read);
    }
    return kills;
}

memory_verdict compare(memory_kills const& before, memory_kills const& after) noexcept {
    // The kernel counts every kill of the cgroup's processes there, including those on a machine without free memory; the
    // cgroup's limit was the cause if it, or one above it, has been reached meanwhile.
    if (before.in_cgroup && after.in_cgroup && *after.in_cgroup > *before.in_cgroup) {
        bool const counts = before.limit_hits && after.limit_hits;
        if (counts && *after.limit_hits > *before.limit_hits) return memory_verdict::in_cgroup;
        return (counts || after.unlimited) && !after.hidden_above ? memory_verdict::on_node : memory_verdict::either;
    }
    if (!before.on_node || !after.on_node) return memory_verdict::unknown;
    return *after.on_node > *before.on_node ? memory_verdict::on_node : memory_verdict::none;
}

memory_verdict memory_verdict_of(int wait_status, memory_kills const& before) {
    if (wait_status == 0) return memory_verdict::unknown;
    auto const verdict = compare(before, count_memory_kills());
    bool const killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
    bool const of_memory =
        verdict == memory_verdict::in_cgroup || verdict == memory_verdict::on_node || verdict == memory_verdict::either;
    return !killed && !of_memory && shm_is_full() ? memory_verdict::shm_full : verdict;
}

}  // namespace muster
