// Datasets in HDF5 files of muster's format (docs/dataset-format.md): opens, reads and verifies them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/dataset/image_shape.hpp"
#include "io/hdf5/hdf5.hpp"
#include "io/hdf5/hyperslab.hpp"

namespace muster {

class communicator;

/// Holds what a file says about one of its splits.
struct dataset_info {
    std::string path;
    std::string name;        ///< "fashion-mnist"; may be empty
    std::string split;       ///< "train", "test"
    std::string created_by;  ///< "muster 0.1.0"
    std::uint64_t format_version = 0;
    std::size_t samples = 0;
    image_shape shape;
    element_type type = element_type::u8;                       ///< of the samples
    std::optional<element_type> label_type = element_type::u8;  ///< u8, u16 or u32; f32 of targets; nothing: no labels
    std::size_t classes = 0;                                    ///< every label is below; 0 of targets and without labels
    std::vector<std::string> class_names;                       ///< one a class, or empty
    std::vector<std::string> columns;                           ///< of a table: one an element of a row, or empty
    std::string source_images;                                  ///< names of the files it was converted from
    std::string source_labels;
    std::vector<std::string> sources;  ///< "DIGEST  BYTES  NAME" of each, as muster-stage convert read it; may be empty
    std::string command;               ///< the command line that made the file; may be empty
    value_range values;                ///< of the samples' elements; any is false where the file does not say
    std::size_t checksum_block_samples = 0;
    std::uint64_t checksum_images = 0;
    std::uint64_t checksum_labels = 0;
    std::size_t chunk_samples = 0;              ///< 0: contiguous
    std::optional<std::uint64_t> image_offset;  ///< of the first image byte in the file, if they lie there as they are
    std::optional<std::uint64_t> label_offset;  ///< likewise
    bool compressed = false;                    ///< the samples are stored encoded
    bool read_by_chunks = false;                ///< sample_file can read them
    std::size_t image_bytes() const noexcept { return shape.elements() * bytes_of(type); }
    std::size_t label_bytes() const noexcept { return label_type ? bytes_of(*label_type) : 0; }
    bool operator==(dataset_info const&) const = default;
};

/// An open split, for reading. Holds HDF5 handles: one thread at a time. Errors: errc::not_found (no such file or split; the
/// message says what there is), hdf5_error, errc::invalid_data where the file is not what docs/dataset-format.md says.
class dataset {
  public:
    /// Opens for this process alone, serially: what a training rank does with a file on its node, whatever MPI it uses elsewhere.
    static dataset open(std::string const& path, std::string const& split = "train");

    /// Collective: all ranks open the file through MPI-IO, and read() and verify() are collective. All ranks throw if one fails.
    /// The communicator must outlive the dataset.
    static dataset open(std::string const& path, communicator& comm, std::string const& split = "train");

    /// The splits in a file, in order of name; at least one, else errc::invalid_data. The first form is not collective; in the
    /// second each rank looks for itself, and all throw if one fails.
    static std::vector<std::string> splits(std::string const& path);
    static std::vector<std::string> splits(std::string const& path, communicator& comm);

    dataset_info const& info() const noexcept { return info_; }
    std::size_t size() const noexcept { return info_.samples; }
    image_shape shape() const noexcept { return info_.shape; }
    std::size_t image_bytes() const noexcept { return info_.image_bytes(); }  ///< of one sample
    std::size_t label_bytes() const noexcept { return info_.label_bytes(); }  ///< of one label; 0 without labels
    std::size_t classes() const noexcept { return info_.classes; }

    /// Samples first … first+count-1: count * image_bytes() bytes into `images`, count * label_bytes() into `labels`; an empty
    /// span leaves that part out (on every rank alike). errc::usage if they do not fit. Collective if opened so: every rank calls it, with its own
    /// samples or with none; afterwards it is checked that the transfer was collective, and all ranks throw if one failed.
    void read(std::size_t first, std::size_t count, std::span<std::uint8_t> images, std::span<std::uint8_t> labels) const;
    void read(hyperslab rows, std::span<std::uint8_t> images, std::span<std::uint8_t> labels) const {
        read(rows.first, rows.count, images, labels);
    }

    /// Returns where the chunks of samples lie in the file; empty if contiguous. Not collective.
    std::vector<hdf5::stored_chunk> stored_chunks() const;

    /// Reads everything, in pieces of about 8 MiB, and compares it with the checksums and the range of labels. Throws
    /// errc::invalid_data that names the file, the array, the block, its samples and its bytes in the file. `progress`, if given, gets the bytes
    /// read after each piece. Collective if opened so: each rank checks its part.
    void verify(std::function<void(std::uint64_t)> const& progress = {}) const;

  private:
    dataset() = default;
    static dataset open_with(std::string const& path, std::shared_ptr<communicator> ranks, std::string const& split);
    void read_info(hdf5::file const& file, hdf5::group const& group);
    void check_forms(hdf5::group const& group);
    void check_labels(hdf5::group const& group);
    void transfer(hdf5::place const& where, hdf5::dataset const& from, element_type type, hyperslab rows, std::size_t row_bytes,
                  std::uint8_t* data) const;
    std::string place_of_block(std::size_t block, bool of_images) const;
    std::string place_of_chunks(hyperslab rows, bool of_images) const;
    void verify_blocks(hyperslab rows, std::span<std::uint8_t const> images, std::span<std::uint8_t const> labels,
                       std::span<std::uint64_t const> image_blocks, std::span<std::uint64_t const> label_blocks) const;

    dataset_info info_;
    std::shared_ptr<communicator> ranks_;  ///< its own for one process alone, else the caller's, not owned
    hdf5::file file_;
    hdf5::group group_;
    hdf5::dataset images_;
    hdf5::dataset labels_;
};

}  // namespace muster
