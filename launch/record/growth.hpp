// Measures progress by what a program writes: a log that grows, or checkpoints in a folder.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

inline constexpr int usual_most_entries = 100'000;             ///< a folder with more entries is no place for checkpoints
inline constexpr std::uintmax_t unknown_growth = UINTMAX_MAX;  ///< not all of the folder was readable

/// Returns the size of a file, or the time of the newest file in a folder, up to three folders deep. Ignores hidden files, and
/// those that are being written (.new, .tmp). Returns 0 if there is nothing.
std::uintmax_t measure_growth(std::string const& path, int most_entries = usual_most_entries);

/// Returns whether it is larger than before, which is progress. Reports an unknown result, which counts as progress.
bool has_grown(std::string const& path, std::uintmax_t before, int most_entries = usual_most_entries);

}  // namespace muster
