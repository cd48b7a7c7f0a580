#include "launch/system/process_stat.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/process/files.hpp"
#include "base/text.hpp"

namespace muster {

std::optional<process_status> parse_process_stat(std::string_view text) {
    auto const behind = text.rfind(") ");  // the command's name may contain blanks and parentheses
    if (behind == std::string_view::npos) return std::nullopt;
    auto const fields = split(text.substr(behind + 2), ' ');  // from the third of proc(5)
    if (fields.size() < 29 || fields[0].empty()) return std::nullopt;
    auto const number = [&](std::size_t at) { return static_cast<std::uint64_t>(parse_integer(fields[at]).value_or(0)); };
    return process_status{.state = fields[0][0],
                          .parent = static_cast<pid_t>(number(1)),
                          .flags = number(6),
                          .user_ticks = number(11) + number(13),
                          .system_ticks = number(12) + number(14),
                          .major_faults = number(9) + number(10),
                          .threads = number(17),
                          .resident_pages = number(21),
                          .start_ticks = number(19),
                          .pending = number(28)};
}

std::optional<process_status> read_process_stat(pid_t pid) noexcept try {
    return parse_process_stat(read_text_file(fmt::format("/proc/{}/stat", pid)));
} catch (...) {
    return std::nullopt;
}

double ticks_per_s() noexcept {
    static auto const ticks = static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
    return ticks;
}

std::vector<pid_t> list_processes() {
    std::vector<pid_t> pids;
    for (auto const& entry : folder_entries("/proc"))
        if (auto const pid = parse_integer(entry.filename().string())) pids.push_back(static_cast<pid_t>(*pid));
    return pids;
}

std::map<pid_t, std::vector<pid_t>> living_children() {
    std::map<pid_t, std::vector<pid_t>> children;
    for (pid_t const pid : list_processes())
        if (auto const stat = read_process_stat(pid); stat && stat->lives()) children[stat->parent].push_back(pid);
    return children;
}

}  // namespace muster
