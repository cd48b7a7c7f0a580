#include "io/stage/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/throw_error.hpp"
#include "base/units.hpp"

namespace muster::stage {

namespace {

using clock = std::chrono::steady_clock;

std::size_t terminal_width() {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

constexpr std::size_t around_bar = 4;  ///< " [", "]", and the column of the cursor
constexpr std::size_t shortest_bar = 12;

void draw_bar(std::string const& what, std::uint64_t done, std::uint64_t total, double seconds) {
    fmt::print(stderr, "\r{}\033[K", progress_bar(what, done, total, seconds, terminal_width()));
}

void print_json(std::string const& what, std::uint64_t done, std::uint64_t total, double seconds) {
    double const rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
    nlohmann::ordered_json line{{"what", what},       {"done_bytes", done},       {"total_bytes", total},
                                {"seconds", seconds}, {"bytes_per_second", rate}, {"seconds_left", nullptr}};
    if (rate > 0) line["seconds_left"] = static_cast<double>(total - std::min(done, total)) / rate;
    fmt::print(stderr, "{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

progress_style parse_progress(std::string const& name) {
    if (name.empty() || name == "auto") return ::isatty(STDERR_FILENO) != 0 ? progress_style::bar : progress_style::lines;
    if (name == "none") return progress_style::none;
    if (name == "bar") return progress_style::bar;
    if (name == "lines") return progress_style::lines;
    if (name == "json") return progress_style::json;
    throw_error(errc::usage, "--progress: '{}' is no way to show it; give one of {}", name, progress_names);
}

std::string format_rate(double bytes_per_s) {
    if (bytes_per_s < 1e6) return fmt::format("{:.1f} kB/s", bytes_per_s / 1e3);
    return fmt::format("{:.{}f} MB/s", bytes_per_s / 1e6, bytes_per_s < 1e7 ? 1 : 0);
}

std::string progress_line(std::string const& what, std::uint64_t done, std::uint64_t total, double seconds) {
    double const rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
    std::string const rest = rate > 0 && done < total
                                 ? fmt::format(", {} left", format_duration(duration{static_cast<double>(total - done) / rate}))
                                 : "";
    return fmt::format("{}: {} %, {} of {}, {}{}", what, total == 0 ? 100 : done * 100 / total, format_bytes(done),
                       format_bytes(total), format_rate(rate), rest);
}

std::string progress_bar(std::string const& what, std::uint64_t done, std::uint64_t total, double seconds, std::size_t columns) {
    auto const percent = fmt::format("{}: {} %", what, total == 0 ? 100 : done * 100 / total);
    auto const bytes = fmt::format("{}, {} of {}", percent, format_bytes(done), format_bytes(total));
    auto line = progress_line(what, done, total, seconds);
    for (auto const& shorter : {bytes, percent})
        if (columns < line.size() + around_bar + shortest_bar) line = shorter;
    if (columns < line.size() + around_bar + shortest_bar) return line.substr(0, columns - std::min<std::size_t>(columns, 1));
    auto const width = std::min<std::size_t>(columns - line.size() - around_bar, 40);
    auto const part = total == 0 ? 1 : static_cast<double>(std::min(done, total)) / static_cast<double>(total);
    auto const full = static_cast<std::size_t>(static_cast<double>(width) * part);
    return fmt::format("{} [{}{}]", line, std::string(full, '#'), std::string(width - full, '.'));
}

std::function<void(std::uint64_t, std::uint64_t)> progress(std::string what, progress_style style) {
    if (style == progress_style::none) return [](std::uint64_t, std::uint64_t) {};
    return [what = std::move(what), style, begin = std::optional<clock::time_point>(), last = clock::time_point()](
               std::uint64_t done, std::uint64_t total) mutable {
        auto const now = clock::now();
        if (!begin) begin = last = now;
        if (total == 0) return;
        bool const ends = done >= total;
        auto const pause = style == progress_style::bar    ? std::chrono::milliseconds(100)
                           : style == progress_style::json ? std::chrono::milliseconds(1000)
                                                           : std::chrono::milliseconds(10000);
        if (now - last < pause && !(ends && style != progress_style::lines)) return;
        last = now;
        double const seconds = std::chrono::duration<double>(now - *begin).count();
        if (style == progress_style::json)
            print_json(what, done, total, seconds);
        else if (style == progress_style::lines)
            fmt::print(stderr, "{}\n", progress_line(what, done, total, seconds));
        else if (ends)
            fmt::print(stderr, "\r\033[K");
        else
            draw_bar(what, done, total, seconds);
        std::fflush(stderr);
    };
}

}  // namespace muster::stage
