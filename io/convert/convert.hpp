// Conversion: makes one dataset file from pairs of IDX files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/dataset/dataset_writer.hpp"

namespace muster {

struct idx_pair {
    std::string split;   ///< "train"
    std::string images;  ///< path of an IDX file, plain or gzip
    std::string labels;
    bool operator==(idx_pair const&) const = default;
};

struct convert_request {
    std::vector<idx_pair> splits;  ///< at least one
    std::string output;
    std::size_t classes = 0;               ///< 0: the largest label of all splits, plus one
    std::vector<std::string> class_names;  ///< empty, or one a class; gives `classes` where that is 0
    std::size_t chunk_samples = 0;         ///< 0: contiguous
    writer_options writer;
    bool operator==(convert_request const&) const = default;
};

struct convert_report {
    struct split {
        std::string name;
        std::size_t samples = 0;
        image_shape shape;
        bool operator==(split const&) const = default;
    };
    std::vector<split> splits;
    std::size_t classes = 0;
    std::uint64_t bytes = 0;  ///< of images and labels, over all ranks
    bool operator==(convert_report const&) const = default;
};

/// Told after each piece: the bytes that this rank has written of those it will write.
using convert_progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Converts. With a communicator it is collective: each rank reads, checks and writes its own whole blocks of the samples. From a
/// plain file a rank reads just these; a compressed one it inflates from the beginning up to the end of its part, side by side
/// with the other ranks, so that this takes no longer than inflating once and needs no exchange of data. The file's contents do
/// not depend on the number of ranks. Needs about 8 MiB of memory, or one image if that is larger. On a failure all ranks throw
/// and no file is left: idx_error, errors of dataset_writer, errc::usage (splits of different shape, no class names for some
/// classes).
convert_report convert(convert_request const& request, convert_progress const& progress = {});
convert_report convert(convert_request const& request, communicator& ranks, convert_progress const& progress = {});

}  // namespace muster
