// Progress of a long piece of work: shows on standard error how much is done, how fast, and how long the rest takes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace muster::stage {

enum class progress_style {
    none,
    bar,    ///< one line that is drawn again and again, and wiped at the end
    lines,  ///< a plain line every 10 seconds
    json,   ///< an object a line every second, and one at the end
};

/// The option --progress: its value's name, and what it means. "auto": a bar where standard error is a terminal, else lines. Throws
/// errc::usage.
inline constexpr char const* progress_names = "none|bar|lines|json";
progress_style parse_progress(std::string const& name);

/// Returns a function to call with the bytes that this rank has done, and will do. Its first call
/// begins to count the time. Shows nothing for 0 bytes.
std::function<void(std::uint64_t done, std::uint64_t total)> progress(std::string what, progress_style style);

/// "812 MB/s", "2.5 MB/s", "13.2 kB/s".
std::string format_rate(double bytes_per_s);

/// Returns what it shows, for tests: "convert: 42 %, 1.2 GiB of 2.9 GiB, 812 MB/s, 2.1 s left".
std::string progress_line(std::string const& what, std::uint64_t done, std::uint64_t total, double seconds);

/// The same with a bar, in less than so many columns: where there is no room the rate and the bytes are left out.
std::string progress_bar(std::string const& what, std::uint64_t done, std::uint64_t total, double seconds, std::size_t columns);

}  // namespace muster::stage
