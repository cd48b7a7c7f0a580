// Measures progress by what a program writes: a log that grows, or checkpoints in a folder.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

/// Of a file its size; of a folder when the newest file in it, three folders deep, was written. Hidden files, and those that are being written (.new, .tmp), do not
/// count. Larger than before: there is progress. 0: nothing is there.
std::uintmax_t measure_growth(std::string const& path);

}  // namespace muster
