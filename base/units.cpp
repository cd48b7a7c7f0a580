#include "base/units.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

struct unit {
    std::string_view name;
    double factor;
};

constexpr std::array byte_units{
    unit{"", 1},
    unit{"B", 1},
    unit{"K", 1024.0},
    unit{"k", 1024.0},
    unit{"KiB", 1024.0},
    unit{"kB", 1e3},
    unit{"KB", 1e3},
    unit{"M", 1048576.0},
    unit{"m", 1048576.0},
    unit{"MiB", 1048576.0},
    unit{"MB", 1e6},
    unit{"G", 1073741824.0},
    unit{"g", 1073741824.0},
    unit{"GiB", 1073741824.0},
    unit{"GB", 1e9},
    unit{"T", 0x1p40},
    unit{"t", 0x1p40},
    unit{"TiB", 0x1p40},
    unit{"TB", 1e12},
};

constexpr std::array time_units{
    unit{"", 1},   unit{"s", 1},    unit{"sec", 1},  unit{"ms", 1e-3}, unit{"us", 1e-6},
    unit{"m", 60}, unit{"min", 60}, unit{"h", 3600}, unit{"d", 86400},
};

constexpr double longest_seconds = 1e9;  // about 30 years: fits a clock that counts nanoseconds in 64 bits

struct quantity {
    double number;
    std::string_view unit;
    std::size_t unit_offset;
};

quantity read_quantity(std::string_view text, std::string_view origin, std::string_view example) {
    std::size_t i = 0;
    while (i < text.size() && ((text[i] >= '0' && text[i] <= '9') || text[i] == '.')) ++i;
    auto const number = parse_real(text.substr(0, i));
    if (!number) throw parse_error(origin, text, 0, fmt::format("expected a number, such as {}", example));
    auto const rest = text.substr(i);
    auto const unit = trim(rest);
    return {*number, unit, unit.empty() ? i : static_cast<std::size_t>(unit.data() - text.data())};
}

template <std::size_t N>
double factor_of(std::array<unit, N> const& units, quantity const& q, std::string_view text, std::string_view origin,
                 std::string_view known) {
    for (auto const& u : units)
        if (u.name == q.unit) return u.factor;
    throw parse_error(origin, text, q.unit_offset, fmt::format("unknown unit '{}'; use one of {}", q.unit, known));
}

double clock_field(std::string_view text, std::string_view piece, std::string_view origin, bool first) {
    auto const offset = static_cast<std::size_t>(piece.data() - text.data());
    auto const value = parse_integer(piece);
    if (!value || *value < 0) throw parse_error(origin, text, offset, "expected a whole number here, as in 1:30:00");
    if (!first && *value > 59) throw parse_error(origin, text, offset, "expected at most 59 here, as in 1:30:00");
    return static_cast<double>(*value);
}

/// "[D-]H[:M[:S]]" or "M:S" or "H:M:S" in seconds.
double read_clock(std::string_view text, std::string_view origin) {
    double days = 0;
    auto clock = text;
    bool const with_days = text.find('-') != std::string_view::npos;
    if (with_days) {
        auto const dash = text.find('-');
        days = clock_field(text, text.substr(0, dash), origin, true);
        clock = text.substr(dash + 1);
    }
    auto const pieces = split(clock, ':');
    if (pieces.size() > 3) throw parse_error(origin, text, 0, "too many colons; use [D-]HH:MM:SS");
    std::array<double, 3> fields{};
    for (std::size_t i = 0; i < pieces.size(); ++i) fields[i] = clock_field(text, pieces[i], origin, i == 0);
    bool const hours_first = with_days || pieces.size() == 3;
    return days * 86400 + (hours_first ? fields[0] * 3600 + fields[1] * 60 + fields[2] : fields[0] * 60 + fields[1]);
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text, std::string_view origin) {
    text = trim(text);
    auto const q = read_quantity(text, origin, "64MiB");
    double const bytes = q.number * factor_of(byte_units, q, text, origin, "B, KiB, MiB, GiB, TiB, kB, MB, GB, TB");
    if (!(bytes < 0x1p63)) throw parse_error(origin, text, 0, "more bytes than fit in 63 bits");
    if (q.unit.empty() || q.unit == "B")
        if (auto const exact = parse_integer(text.substr(0, q.unit_offset))) return static_cast<std::uint64_t>(*exact);
    return static_cast<std::uint64_t>(std::llround(bytes));
}

std::string format_bytes(std::uint64_t bytes) {
    constexpr std::array names{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1024 && unit + 1 < names.size()) {
        value /= 1024;
        ++unit;
    }
    bool const whole = unit == 0 || std::abs(value - std::round(value)) < 0.05;
    return whole ? fmt::format("{:.0f} {}", value, names[unit]) : fmt::format("{:.1f} {}", value, names[unit]);
}

duration parse_duration(std::string_view text, std::string_view origin) {
    text = trim(text);
    double seconds = 0;
    if (text.find(':') != std::string_view::npos || (text.find('-') != std::string_view::npos && text.find('-') > 0)) {
        seconds = read_clock(text, origin);
    } else {
        auto const q = read_quantity(text, origin, "90s, 5min or 1:30:00");
        seconds = q.number * factor_of(time_units, q, text, origin, "us, ms, s, min, h, d");
    }
    if (!(seconds <= longest_seconds)) throw parse_error(origin, text, 0, "longer than 30 years");
    return duration(seconds);
}

std::string format_duration(duration value) {
    double const s = value.count();
    if (s < 0) return "-" + format_duration(-value);
    // A value that three digits round to 1,000 is one of the next unit, and not "1e+03".
    if (s < 999.5e-6) return fmt::format("{:.3g} us", s * 1e6);
    if (s < 0.9995) return fmt::format("{:.3g} ms", s * 1e3);
    if (s < 120) return fmt::format("{:.3g} s", s);
    return format_walltime(value);
}

std::string format_walltime(duration value) {
    auto const total = static_cast<std::int64_t>(std::ceil(std::max(0.0, value.count())));
    return fmt::format("{:02}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
}

}  // namespace muster
