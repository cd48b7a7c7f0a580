#include "launch/jobs/logs/watch_screen.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/text.hpp"
#include "base/text_table.hpp"
#include "launch/jobs/logs/sweep_results.hpp"

namespace muster {

namespace {

constexpr auto print_gpus_every = std::chrono::minutes(1);  ///< without a terminal
constexpr std::size_t most_gpu_lines = 4;                   ///< without a terminal

}  // namespace

std::vector<std::string> fold_line(std::string_view line, std::size_t width) {
    constexpr std::string_view indent = "  ";
    std::vector<std::string> pieces;
    std::string piece;
    while (!line.empty()) {
        auto const semicolon = line.find(';');
        auto const part = line.substr(0, semicolon == std::string_view::npos ? line.size() : semicolon + 1);
        line.remove_prefix(part.size());
        bool const has_part = piece.size() > (pieces.empty() ? 0 : indent.size());
        if (has_part && piece.size() + part.size() > width) {
            pieces.push_back(std::move(piece));
            piece = indent;
            piece += trim(part);
        } else {
            piece += part;
        }
    }
    pieces.push_back(std::move(piece));
    return pieces;
}

watch_screen::watch_screen() : terminal_(::isatty(STDOUT_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1) {}

void watch_screen::erase() {
    if (drawn_ == 0) return;
    std::fflush(stdout);
    for (; drawn_ > 1; --drawn_) fmt::print(stderr, "\r\x1b[K\x1b[A");
    fmt::print(stderr, "\r\x1b[K");
    drawn_ = 0;
}

void watch_screen::draw() {
    if (!terminal_ || states_.empty()) return;
    erase();
    std::fflush(stdout);
    auto const columns = terminal_size(STDERR_FILENO).columns - 1;
    auto text = metric_.empty() ? states_ : fmt::format("{} | {}", states_, metric_);
    fmt::print(stderr, "{}", text.substr(0, columns));
    drawn_ = 1;
    for (auto const& line : gpus_) {
        fmt::print(stderr, "\n{}", line.substr(0, columns));
        ++drawn_;
    }
}

void watch_screen::print_line(std::string const& job, std::string const& who, std::string const& line) {
    erase();
    if (auto const at = line.find(metric_mark); at != std::string::npos)
        metric_ = without_controls(trim(std::string_view(line).substr(at + metric_mark.size())));
    auto const from = who.empty() ? job : job.empty() ? who : fmt::format("{}:{}", job, who);
    auto const shown = terminal_ ? without_controls(line) : line;
    fmt::print("{}{}\n", from.empty() ? "" : fmt::format("[{}] ", from), shown);
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

void watch_screen::show_gpus(std::vector<std::string> const& lines, std::string const& summary) {
    if (!terminal_) {
        auto const now = std::chrono::steady_clock::now();
        if (lines.empty() || (gpus_printed_ && now - *gpus_printed_ < print_gpus_every)) return;
        gpus_printed_ = now;
        if (lines.size() > most_gpu_lines) return print_state(summary);
        for (auto const& line : lines) print_state(line);
        return;
    }
    auto const size = terminal_size(STDERR_FILENO);
    std::vector<std::string> folded;
    for (auto const& line : lines)
        for (auto& piece : fold_line(line, size.columns - 1)) folded.push_back(std::move(piece));
    if (folded.size() > std::max<std::size_t>(size.rows / 3, 1)) folded = {summary};
    if (folded == gpus_) return;
    gpus_ = std::move(folded);
    draw();
}

void watch_screen::flush() {
    std::fflush(stdout);
    if (drawn_ == 0) draw();
}

void watch_screen::end() {
    erase();
    std::fflush(stdout);
    // Without a status line, the last metric is the last line.
    if (!terminal_ && !metric_.empty()) fmt::print(stderr, "muster: last metric: {}\n", metric_);
}

}  // namespace muster
