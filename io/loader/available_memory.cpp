#include "io/loader/available_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

namespace muster {

namespace {

/// The names of a version's files.
struct group_files {
    char const* folder;
    char const* limit;
    char const* use;
    char const* droppable;  ///< a line of memory.stat
};
constexpr group_files version_2{"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
constexpr group_files version_1{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

std::optional<std::uint64_t> number_in(std::string const& path) {
    std::ifstream file(path);
    std::uint64_t value = 0;  // "max" is no number: no limit
    if (file >> value) return value;
    return std::nullopt;
}

/// The number behind `name` in a file of lines "name number".
std::optional<std::uint64_t> number_of(std::string const& path, std::string const& name) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string word;
        std::uint64_t value = 0;
        if (words >> word && word == name && words >> value) return value;
    }
    return std::nullopt;
}

void take_group(memory_room& room, std::string const& root, group_files const& names, std::string group) {
    while (true) {
        std::string const folder = root + names.folder + group;
        auto const limit = number_in(folder + "/" + names.limit);
        auto const used = number_in(folder + "/" + names.use);
        if (limit && used) {
            std::uint64_t const droppable = number_of(folder + "/memory.stat", names.droppable).value_or(0);
            std::uint64_t const held = *used - std::min(*used, droppable);
            std::uint64_t const left = *limit - std::min(*limit, held);
            if (left < room.bytes) room = {left, fmt::format("limit of the control group {}", group.empty() ? "/" : group)};
        }
        if (group.empty()) return;
        group.resize(group.find_last_of('/'));
    }
}

}  // namespace

memory_room available_memory(std::string const& root) {
    memory_room room{std::numeric_limits<std::uint64_t>::max(), "nothing"};
    if (auto const kib = number_of(root + "/proc/meminfo", "MemAvailable:")) room = {*kib * 1024, "the machine"};
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        // "4:memory:/job_7" in version 1, "0::/job_7" in version 2
        std::size_t const first = line.find(':');
        std::size_t const second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos || second + 1 >= line.size() || line[second + 1] != '/') continue;
        std::string const controllers = line.substr(first + 1, second - first - 1);
        std::string group = line.substr(second + 1);
        if (group == "/") group.clear();
        if (controllers.empty()) take_group(room, root, version_2, group);
        if (("," + controllers + ",").find(",memory,") != std::string::npos) take_group(room, root, version_1, group);
    }
    return room;
}

}  // namespace muster
