#pragma once
#include <cstddef>

#include "io/dataset/dataset.hpp"
#include "io/sources/image_file.hpp"

namespace muster::stage {

// A contact sheet: draws samples of a split side by side in one picture.

/// At most `most` samples at even distances through the split, row by row, each with one gray line around it. Elements of other types
/// than uint8 are spread from the smallest to the largest of those shown. Samples of more than one channel and less than three show
/// their first channel; of more than three their first three.
picture contact_sheet(dataset const& from, std::size_t most = 100);

}  // namespace muster::stage
