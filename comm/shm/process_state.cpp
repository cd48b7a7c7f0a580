#include "comm/shm/process_state.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>

#include "base/unique_fd.hpp"

namespace muster::shm {

namespace {

/// Fields after the name in brackets: the state is field 3 of the line, the start time field 22.
constexpr int fields_before_start = 19;

struct reading {
    std::optional<stat_line> line;
    int error = 0;
};

reading read_stat(pid_t pid) noexcept {
    std::array<char, 40> path{};
    std::snprintf(path.data(), path.size(), "/proc/%d/stat", static_cast<int>(pid));
    unique_fd const file(::open(path.data(), O_RDONLY | O_CLOEXEC));
    if (!file) return {std::nullopt, errno};
    std::array<char, 1024> text{};
    ssize_t const length = ::read(file.get(), text.data(), text.size());
    if (length <= 0) return {std::nullopt, length < 0 ? errno : ESRCH};
    return {parse_stat({text.data(), static_cast<std::size_t>(length)}), 0};
}

}  // namespace

std::optional<stat_line> parse_stat(std::string_view text) noexcept {
    std::size_t const bracket = text.rfind(')');
    if (bracket == std::string_view::npos || bracket + 2 >= text.size() || text[bracket + 1] != ' ') return std::nullopt;
    text.remove_prefix(bracket + 2);
    stat_line line;
    line.state = text.front();
    for (int field = 0; field < fields_before_start; ++field) {
        std::size_t const blank = text.find(' ');
        if (blank == std::string_view::npos) return std::nullopt;
        text.remove_prefix(blank + 1);
    }
    auto const [end, fault] = std::from_chars(text.data(), text.data() + text.size(), line.start_ticks);
    if (fault != std::errc{} || end == text.data()) return std::nullopt;
    return line;
}

process own_process() noexcept {
    process self{::getpid(), 0};
    if (auto const found = read_stat(self.pid); found.line) self.start_ticks = found.line->start_ticks;
    return self;
}

process_state look_at(process const& whom) noexcept {
    if (whom.pid <= 0) return process_state::unknown;
    auto const found = read_stat(whom.pid);
    if (!found.line) {
        if (::kill(whom.pid, 0) != 0 && errno == ESRCH) return process_state::gone;
        return process_state::unknown;
    }
    if (whom.start_ticks != 0 && found.line->start_ticks != whom.start_ticks) return process_state::gone;
    switch (found.line->state) {
        case 'Z':
        case 'X':
        case 'x': return process_state::gone;
        case 'T':
        case 't': return process_state::stopped;
        default: return process_state::running;
    }
}

std::string_view describe(process_state state) noexcept {
    switch (state) {
        case process_state::running: return "is running";
        case process_state::stopped: return "is stopped";
        case process_state::gone: return "is gone";
        case process_state::unknown: break;
    }
    return "cannot be looked at";
}

}  // namespace muster::shm
