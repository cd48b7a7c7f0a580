// Conversion: makes one dataset file from files of other formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/convert/divide_source.hpp"
#include "io/dataset/dataset_writer.hpp"
#include "io/sources/sample_source.hpp"

namespace muster {

struct convert_request {
    std::vector<split_source> splits;  ///< at least one
    std::vector<split_part> parts;     ///< that the one source of the one split is divided into; empty: it is not
    std::uint64_t seed = 0;            ///< of that division
    std::string output;
    std::size_t classes = 0;               ///< 0: as the sources say, else the largest label of all splits, plus one
    std::vector<std::string> class_names;  ///< empty, or one a class; gives `classes` where that is 0
    std::size_t chunk_samples = 0;         ///< 0: contiguous, or of about 1 MiB where compressed
    unsigned gzip_level = 0;               ///< 0: not compressed
    writer_options writer;                 ///< its identity is filled in here, by `resume`
    source_options reading;
    bool digests = false;  ///< keep the digests of the sources, for which all of them are read once more
    bool resume = false;   ///< go on with what a conversion of the same sources that was killed has left
    bool dry_run = false;  ///< open and check everything, and write nothing
    bool operator==(convert_request const&) const = default;
};

struct convert_report {
    struct split {
        std::string name;
        std::size_t samples = 0;
        image_shape shape;
        element_type type = element_type::u8;
        source_notes notes;
        bool operator==(split const&) const = default;
    };
    std::vector<split> splits;
    std::size_t classes = 0;
    bool targets = false;  ///< the labels are targets of a regression
    std::vector<std::string> class_names;
    std::uint64_t bytes = 0;        ///< of images and labels, over all ranks
    std::uint64_t found_bytes = 0;  ///< of these, what an earlier conversion had written
    bool operator==(convert_report const&) const = default;
};

/// Told after each piece: the bytes that this rank has written of those it will write.
using convert_progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Converts. With a communicator it is collective: each rank reads, checks and writes its own whole blocks of the samples. From a
/// plain file a rank reads just these; a compressed one it inflates from the beginning up to the end of its part, side by side
/// with the other ranks, so that this takes no longer than inflating once and needs no exchange of data. The file has the same
/// bytes for any number of ranks. Needs about 8 MiB of memory, or one image if that is larger. On a failure all ranks throw
/// and no file is left: the errors of the sources and of dataset_writer; errc::usage (splits of different shape, more than one to be divided, no class names
/// for some classes, labels of different kinds); errc::invalid_data (a source that changed meanwhile).
convert_report convert(convert_request const& request, convert_progress const& progress = {});
convert_report convert(convert_request const& request, communicator& ranks, convert_progress const& progress = {});

}  // namespace muster
