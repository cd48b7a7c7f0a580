#include "comm/backend/processes/process_watch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "base/unique_fd.hpp"

namespace muster {

namespace {

constexpr int field_of_state = 3;
constexpr int field_of_start = 22;

/// Returns the beginning of a small file; "" and errno if it cannot be read.
std::string_view read_start(char const* path, std::array<char, 1024>& into) noexcept {
    unique_fd const file(::open(path, O_RDONLY | O_CLOEXEC));
    if (!file) return {};
    ssize_t const length = ::read(file.get(), into.data(), into.size());
    return length > 0 ? std::string_view(into.data(), static_cast<std::size_t>(length)) : std::string_view{};
}

std::uint64_t hash_more(std::uint64_t hash, std::string_view text) noexcept {
    for (char const c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
}

std::string_view read_link(char const* path, std::array<char, 64>& into) noexcept {
    ssize_t const length = ::readlink(path, into.data(), into.size());
    return {into.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

/// Returns 0 if process numbers cannot be looked up: /proc may be another PID namespace's, with other numbers.
std::uint64_t this_machine() noexcept {
    static std::uint64_t const boot = [] {
        std::array<char, 1024> text;
        auto const id = read_start("/proc/sys/kernel/random/boot_id", text);
        return id.empty() ? 0 : hash_more(0xcbf29ce484222325u, id);
    }();
    std::array<char, 64> text;
    auto const self = read_link("/proc/self", text);
    pid_t number = 0;
    std::from_chars(self.data(), self.data() + self.size(), number);
    if (boot == 0 || number != ::getpid()) return 0;
    // This is read each time: a forked child may be in another namespace.
    auto const space = read_link("/proc/self/ns/pid", text);
    return space.empty() ? 0 : hash_more(boot, space);
}

process_stat stat_of(std::int32_t pid, int& fault) noexcept {
    std::array<char, 32> path{"/proc/"};
    auto const end = std::to_chars(path.data() + 6, path.data() + 20, pid).ptr;
    std::string_view("/stat").copy(end, 5);
    std::array<char, 1024> text;
    errno = 0;
    auto const read = read_start(path.data(), text);
    fault = read.empty() ? errno : 0;
    return parse_stat(read);
}

}  // namespace

process_stat parse_stat(std::string_view text) noexcept {
    auto const name_end = text.rfind(')');  // a program's name may hold anything
    if (name_end == std::string_view::npos) return {};
    text.remove_prefix(name_end + 1);
    process_stat found;
    for (int field = field_of_state; field <= field_of_start; ++field) {
        if (text.empty() || text.front() != ' ') return {};
        text.remove_prefix(1);
        auto const value = text.substr(0, text.find_first_of(" \n"));
        if (value.empty()) return {};
        if (field == field_of_state) {
            char const letter = value.front();
            found.state = letter == 'T' || letter == 't'                    ? process_state::stopped
                          : letter == 'Z' || letter == 'X' || letter == 'x' ? process_state::gone
                                                                            : process_state::running;
        } else if (field == field_of_start) {
            if (std::from_chars(value.data(), value.data() + value.size(), found.started).ec != std::errc{}) return {};
        }
        text.remove_prefix(value.size());
    }
    return found;
}

process_name this_process() noexcept {
    process_name self{static_cast<std::int32_t>(::getpid()), 0, this_machine()};
    int fault = 0;
    self.started = stat_of(self.pid, fault).started;
    return self;
}

process_state state_of(process_name const& process) noexcept {
    if (process.pid <= 0 || process.machine == 0 || process.machine != this_machine()) return process_state::unknown;
    int fault = 0;
    process_stat const now = stat_of(process.pid, fault);
    if (fault == ENOENT || fault == ESRCH) return process_state::gone;
    if (now.state == process_state::unknown) return process_state::unknown;
    return now.started == process.started ? now.state : process_state::gone;
}

std::string describe(process_name const& process, process_state state) {
    switch (state) {
        case process_state::running: return fmt::format("process {} is running", process.pid);
        case process_state::stopped: return fmt::format("process {} is stopped", process.pid);
        case process_state::gone: return fmt::format("process {} is gone", process.pid);
        case process_state::unknown: break;
    }
    return fmt::format("nothing is known of process {}", process.pid);
}

}  // namespace muster
