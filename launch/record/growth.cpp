#include "launch/record/growth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr int deepest = 3;

bool counts(fs::path const& file) {
    auto const name = file.filename().string();
    return !name.starts_with('.') && file.extension() != ".new" && file.extension() != ".tmp";
}

/// Returns nanoseconds since the epoch of the kernel's clock.
std::uintmax_t time_of(fs::directory_entry const& file) {
    std::error_code fault;
    auto const time = std::chrono::file_clock::to_sys(file.last_write_time(fault));
    auto const ns = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
    return fault || ns < 0 ? 0 : static_cast<std::uintmax_t>(ns);
}

/// The folder's order is not that of the files' times, so an unread file may be newer.
std::uintmax_t newest_in(std::string const& folder, int most_entries) {
    std::error_code fault;
    std::uintmax_t newest = 0;
    int seen = 0;
    for (auto at = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, fault);
         !fault && at != fs::recursive_directory_iterator(); at.increment(fault)) {
        if (++seen > most_entries) return unknown_growth;
        if (at.depth() >= deepest || !counts(at->path())) at.disable_recursion_pending();
        std::error_code of_file;
        if (counts(at->path()) && at->is_regular_file(of_file)) newest = std::max(newest, time_of(*at));
    }
    return fault ? unknown_growth : newest;
}

}  // namespace

std::uintmax_t measure_growth(std::string const& path, int most_entries) {
    std::error_code fault;
    if (fs::is_directory(path, fault)) return newest_in(path, most_entries);
    auto const size = fs::file_size(path, fault);
    return fault ? 0 : size;
}

bool has_grown(std::string const& path, std::uintmax_t before, int most_entries) {
    auto const now = measure_growth(path, most_entries);
    if (now != unknown_growth && before != unknown_growth) return now > before;
    fmt::print(
        stderr,
        "muster: note: {} could not be read to its end (it has more than {} entries, or they changed meanwhile), so whether it "
        "has grown (--must-grow) is unknown and counts as progress; name the folder that holds only the checkpoints\n",
        path, most_entries);
    return true;
}

}  // namespace muster
