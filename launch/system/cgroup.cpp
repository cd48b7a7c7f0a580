#include "launch/system/cgroup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/process/files.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

/// Returns the path of the cgroup in "4:memory:/job" (version 1) or "0::/job" (version 2).
std::optional<std::string_view> path_in(std::string_view cgroup, bool first_version, std::string_view controller) {
    for (auto const line : split(cgroup, '\n')) {
        auto const fields = split(line, ':');
        if (fields.size() < 3) continue;
        auto const path = line.substr(fields[0].size() + fields[1].size() + 2);
        if (!first_version && fields[0] == "0" && fields[1].empty()) return path;
        if (!first_version) continue;
        for (auto const name : split(fields[1], ','))
            if (name == controller) return path;
    }
    return std::nullopt;
}

/// Returns where `path` of that hierarchy lies in this process' file system: proc(5) describes the fields of mountinfo.
std::optional<cgroup_place> locate(std::string_view mountinfo, std::string_view type, std::string_view option,
                                   std::string_view path) {
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
        return cgroup_place{std::string(before[4]), fmt::format("{}{}", before[4], path == "/" ? "" : path), !option.empty()};
    }
    return std::nullopt;
}

/// Returns 2 for "200000 100000"; nothing for "max 100000", and for "-1" with its period.
std::optional<double> cpus_of(std::string_view quota, std::string_view period) {
    auto const time = parse_integer(trim(quota)), of = parse_integer(trim(period));
    if (!time || !of || *time <= 0 || *of <= 0) return std::nullopt;
    return static_cast<double>(*time) / static_cast<double>(*of);
}

}  // namespace

std::vector<std::string> cgroup_place::folders() const {
    std::vector<std::string> all;
    for (auto one = folder; one.size() >= root.size() && !one.empty(); one.resize(one.rfind('/'))) {
        all.push_back(one);
        if (one.rfind('/') == std::string::npos) break;
    }
    return all;
}

std::optional<cgroup_place> find_cgroup(std::string_view cgroup, std::string_view mountinfo, std::string_view controller) {
    if (auto const path = path_in(cgroup, true, controller)) return locate(mountinfo, "cgroup", controller, *path);
    if (auto const path = path_in(cgroup, false, controller)) return locate(mountinfo, "cgroup2", "", *path);
    return std::nullopt;
}

std::optional<int> find_cpu_quota(cgroup_place const& place, std::function<std::string(std::string const& path)> const& read) {
    std::optional<double> least;
    for (auto const& folder : place.folders()) {
        std::optional<double> here;
        if (place.first_version) {
            here = cpus_of(read(folder + "/cpu.cfs_quota_us"), read(folder + "/cpu.cfs_period_us"));
        } else {
            auto const text = read(folder + "/cpu.max");
            auto const blank = std::min(text.find(' '), text.size());
            here = cpus_of(std::string_view(text).substr(0, blank), std::string_view(text).substr(blank));
        }
        if (here && (!least || *here < *least)) least = here;
    }
    // A rounded 2.0000001 counts as 2.
    return least ? std::optional(std::max(1, static_cast<int>(std::ceil(*least - 1e-6)))) : std::nullopt;
}

std::optional<int> own_cpu_quota() {
    auto const place = find_cgroup(read_text_file("/proc/self/cgroup"), read_text_file("/proc/self/mountinfo"), "cpu");
    return place ? find_cpu_quota(*place, [](std::string const& path) { return read_text_file(path); }) : std::nullopt;
}

std::vector<std::string> freezer_files(std::string_view cgroup, std::string_view mountinfo) {
    std::vector<std::string> files;
    auto const add = [&](bool first_version, std::string_view type, std::string_view option, std::string_view name) {
        auto const path = path_in(cgroup, first_version, option);
        if (auto const place = path ? locate(mountinfo, type, option, *path) : std::nullopt)
            files.push_back(fmt::format("{}/{}", place->folder, name));
    };
    add(true, "cgroup", "freezer", "freezer.state");
    add(false, "cgroup2", "", "cgroup.events");
    return files;
}

bool says_frozen(std::string_view text) {
    for (auto const line : split(text, '\n'))
        if (line == "FROZEN" || line == "frozen 1") return true;
    return false;
}

bool is_frozen(pid_t pid) {
    auto const cgroups = read_text_file(fmt::format("/proc/{}/cgroup", pid));
    if (cgroups.empty() || cgroups == read_text_file("/proc/self/cgroup")) return false;
    for (auto const& file : freezer_files(cgroups, read_text_file("/proc/self/mountinfo")))
        if (says_frozen(read_text_file(file))) return true;
    return false;
}

}  // namespace muster
