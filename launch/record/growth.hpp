// Measures progress by what a program writes: a log that grows, or checkpoints in a folder.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

inline constexpr int usual_most_entries = 100'000;             ///< a folder with more is no place for checkpoints
inline constexpr std::uintmax_t unknown_growth = UINTMAX_MAX;  ///< the folder could not be read whole

/// Of a file its size; of a folder when the newest file in it, three folders deep, was written. Hidden files, and those that are being written (.new, .tmp), do not
/// count. 0: nothing is there.
std::uintmax_t measure_growth(std::string const& path, int most_entries = usual_most_entries);

/// Whether it is larger than before: there is progress. Says so if that is unknown, which counts as progress.
bool has_grown(std::string const& path, std::uintmax_t before, int most_entries = usual_most_entries);

}  // namespace muster
