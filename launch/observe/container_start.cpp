#include "launch/observe/container_start.hpp"

#include <signal.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "launch/system/end_processes.hpp"

namespace muster {

namespace {

constexpr duration look_each{0.1};

/// Returns whether the name is that of a program of Apptainer 1.4 or SingularityCE 4, of one that they mount images with, or of
/// the first process in a container's own PID namespace.
bool is_of_runtime(std::string_view name) {
    constexpr std::array<std::string_view, 11> prefixes{"apptainer", "singularity", "starter",    "squashfuse",
                                                        "fuse",      "gocryptfs",   "unsquashfs", "newuidmap",
                                                        "newgidmap", "appinit",     "sinit"};
    return std::ranges::any_of(prefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

std::vector<process_place> processes_below() {
    std::vector<process_place> all;
    for (pid_t const pid : descendants()) all.push_back({pid, parent_of(pid), name_of_process(pid)});
    return all;
}

void follow(event_loop& loop, int signal_number, event_loop::clock::time_point until, std::vector<pid_t> opening) {
    if (opening.empty() || event_loop::clock::now() >= until) return;
    loop.after(look_each, [&loop, signal_number, until, opening = std::move(opening)]() mutable {
        auto const all = processes_below();
        auto const lives = [&](pid_t pid) { return std::ranges::any_of(all, [pid](auto const& one) { return one.pid == pid; }); };
        std::erase_if(opening, [&](pid_t runtime) {
            auto const programs = find_container_programs(runtime, all);
            for (pid_t const pid : programs) ::kill(pid, signal_number);
            return !programs.empty() || !lives(runtime);
        });
        follow(loop, signal_number, until, std::move(opening));
    });
}

}  // namespace

std::vector<pid_t> find_container_programs(pid_t runtime, std::vector<process_place> const& processes) {
    std::vector<pid_t> programs;
    for (auto const& one : processes) {
        if (one.parent != runtime) continue;
        if (!is_of_runtime(one.name)) programs.push_back(one.pid);
        auto const below = find_container_programs(one.pid, processes);
        programs.insert(programs.end(), below.begin(), below.end());
    }
    return programs;
}

std::vector<pid_t> find_opening_containers(std::vector<process_place> const& processes) {
    std::vector<pid_t> opening;
    for (auto const& one : processes) {
        auto const is_parent = [&](process_place const& other) { return other.pid == one.parent && is_of_runtime(other.name); };
        bool const is_first = is_of_runtime(one.name) && std::ranges::none_of(processes, is_parent);
        if (is_first && find_container_programs(one.pid, processes).empty()) opening.push_back(one.pid);
    }
    return opening;
}

void signal_opened_containers(event_loop& loop, int signal_number, event_loop::clock::time_point until) {
    follow(loop, signal_number, until, find_opening_containers(processes_below()));
}

}  // namespace muster
