#include "launch/record/growth.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr int deepest = 3;
constexpr int most_entries = 100'000;  ///< a folder that is no place for checkpoints

bool counts(fs::path const& file) {
    auto const name = file.filename().string();
    return !name.starts_with('.') && file.extension() != ".new" && file.extension() != ".tmp";
}

/// Nanoseconds from the epoch of the kernel's clock.
std::uintmax_t time_of(fs::directory_entry const& file) {
    std::error_code fault;
    auto const time = std::chrono::file_clock::to_sys(file.last_write_time(fault));
    auto const ns = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
    return fault || ns < 0 ? 0 : static_cast<std::uintmax_t>(ns);
}

std::uintmax_t newest_in(std::string const& folder) {
    std::error_code fault;
    std::uintmax_t newest = 0;
    int seen = 0;
    for (auto at = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, fault);
         !fault && at != fs::recursive_directory_iterator() && ++seen <= most_entries; at.increment(fault)) {
        if (at.depth() >= deepest || !counts(at->path())) at.disable_recursion_pending();
        std::error_code of_file;
        if (counts(at->path()) && at->is_regular_file(of_file)) newest = std::max(newest, time_of(*at));
    }
    return newest;
}

}  // namespace

std::uintmax_t measure_growth(std::string const& path) {
    std::error_code fault;
    if (fs::is_directory(path, fault)) return newest_in(path);
    auto const size = fs::file_size(path, fault);
    return fault ? 0 : size;
}

}  // namespace muster
