// The layout of a dataset file: creates the file with all its arrays, and says where their rows lie in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/dataset/dataset_writer.hpp"
#include "io/hdf5/element_type.hpp"

namespace muster {

/// Says where an array's rows lie in the file.
struct array_place {
    std::size_t row_bytes = 0;
    std::size_t chunk_rows = 0;          ///< 0: contiguous
    std::vector<std::uint64_t> offsets;  ///< of the array, or of each chunk
    bool operator==(array_place const&) const = default;

    /// Calls run(offset in the file, first row of `rows` in it counted from rows.first, rows) for each piece that lies in one run.
    template <typename Run>
    void each_run(hyperslab rows, Run&& run) const {
        if (chunk_rows == 0) return run(offsets[0] + rows.first * row_bytes, std::size_t{0}, rows.count);
        for (std::size_t row = rows.first; row < rows.end();) {
            std::size_t const in_chunk = row % chunk_rows;
            std::size_t const count = std::min(chunk_rows - in_chunk, rows.end() - row);
            run(offsets[row / chunk_rows] + in_chunk * row_bytes, row - rows.first, count);
            row += count;
        }
    }
};

struct split_places {
    array_place images;
    array_place labels;  ///< no offsets where there are no labels
    bool operator==(split_places const&) const = default;
};

struct file_layout {
    std::vector<split_places> splits;
    std::uint64_t bytes = 0;  ///< of the file
    bool operator==(file_layout const&) const = default;
};

/// Holds what is known of a split's contents when all is written.
struct split_contents {
    std::vector<std::uint64_t> image_blocks;  ///< checksums
    std::vector<std::uint64_t> label_blocks;
    value_range values;
    bool operator==(split_contents const&) const = default;
};

/// Creates the file `path`, serially, with its groups, arrays and attributes except for the checksums, and closes it. The arrays have
/// their space, which is a hole so far; a compressed one has none, and no place in the answer. The same plans give the same
/// bytes. Throws hdf5_error.
file_layout create_layout(std::string const& path, std::vector<split_plan> const& plans, writer_options const& options);

/// Adds the checksums and the range of values to a file of create_layout(), serially. Throws hdf5_error.
void complete_layout(std::string const& path, std::vector<split_plan> const& plans, std::vector<split_contents> const& contents);

/// Gives a file of create_layout(), in which rows were written since, back the bytes that `fresh`, a new file of the same plans,
/// has outside the arrays, and its length. Throws errc::system.
void restore_layout(std::string const& path, std::string const& fresh, file_layout const& layout,
                    std::vector<split_plan> const& plans);

}  // namespace muster
