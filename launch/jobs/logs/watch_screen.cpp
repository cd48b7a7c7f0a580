#include "launch/jobs/logs/watch_screen.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "base/text.hpp"

namespace muster {

namespace {

constexpr std::string_view metric_mark = "muster-metric:";

std::size_t columns() {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79u;
}

}  // namespace

watch_screen::watch_screen() : terminal_(::isatty(STDOUT_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1) {}

void watch_screen::erase() {
    if (!drawn_) return;
    std::fflush(stdout);
    fmt::print(stderr, "\r\x1b[K");
    drawn_ = false;
}

void watch_screen::draw() {
    if (!terminal_ || states_.empty()) return;
    std::fflush(stdout);
    auto text = metric_.empty() ? states_ : fmt::format("{} | {}", states_, metric_);
    fmt::print(stderr, "\r\x1b[K{}", text.substr(0, columns()));
    drawn_ = true;
}

void watch_screen::print_line(std::string const& job, int rank, std::string const& line) {
    erase();
    if (auto const at = line.find(metric_mark); at != std::string::npos)
        metric_ = without_controls(trim(std::string_view(line).substr(at + metric_mark.size())));
    auto const who = rank < 0 ? job : job.empty() ? std::to_string(rank) : fmt::format("{}:{}", job, rank);
    auto const shown = terminal_ ? without_controls(line) : line;
    fmt::print("{}{}\n", who.empty() ? "" : fmt::format("[{}] ", who), shown);
}

void watch_screen::print_state(std::string const& line) {
    erase();
    std::fflush(stdout);
    fmt::print(stderr, "muster: {}\n", line);
}

void watch_screen::show_status(std::string const& states) {
    states_ = states;
    draw();
}

void watch_screen::flush() {
    std::fflush(stdout);
    if (!drawn_) draw();
}

void watch_screen::end() {
    erase();
    std::fflush(stdout);
    // Where there is no line of status, the last metric is the last line.
    if (!terminal_ && !metric_.empty()) fmt::print(stderr, "muster: last metric: {}\n", metric_);
}

}  // namespace muster
