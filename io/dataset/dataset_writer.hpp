// Image classification datasets in HDF5 files of muster's format (docs/dataset-format.md): writes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/dataset/image_shape.hpp"
#include "io/hdf5/hdf5.hpp"
#include "io/hdf5/hyperslab.hpp"

namespace muster {

class communicator;

struct writer_options {
    std::string name;                                    ///< of the dataset, for people
    std::size_t alignment_bytes = std::size_t{1} << 20;  ///< arrays begin at a multiple: the file system's stripe or block
    bool replace = false;                                ///< whether a file that exists may be replaced
    bool operator==(writer_options const&) const = default;
};

struct split_plan {
    std::string split;  ///< "train", "test"; a name of letters, digits, '-', '_' and '.'
    std::size_t samples = 0;
    image_shape shape;
    std::size_t chunk_samples = 0;  ///< 0: contiguous
    bool operator==(split_plan const&) const = default;
};

struct split_facts {
    std::size_t classes = 0;               ///< 1 … 256
    std::vector<std::string> class_names;  ///< empty, or one a class
    std::string source_images;
    std::string source_labels;
    bool operator==(split_facts const&) const = default;
};

/// Writes one file: begin, write, end for each split, then close. With a communicator every call is collective and several ranks
/// write the file through MPI-IO; without, this process writes it alone. Either way the file holds the same. It grows under
/// PATH.partial and gets its name only in close(): a writer destroyed before leaves nothing, and the file that had the name as it
/// was. If a call fails on one rank it throws on all. One thread at a time. Errors: errc::usage (the file exists, an impossible
/// plan), errc::system, hdf5_error.
class dataset_writer {
  public:
    /// Alone.
    dataset_writer(std::string path, writer_options options);
    /// Collective. The communicator must outlive the writer.
    dataset_writer(std::string path, writer_options options, communicator& ranks);
    dataset_writer(dataset_writer const&) = delete;
    dataset_writer& operator=(dataset_writer const&) = delete;
    ~dataset_writer();

    /// Creates the split's arrays.
    void begin(split_plan plan);

    /// What this rank is to write of the current split: whole blocks of checksums.
    hyperslab share() const;
    std::size_t block_samples() const noexcept { return block_; }

    /// Writes samples `rows` of this rank's share, beginning and ending at a block's border or at the split's end. Empty rows
    /// take part with nothing: all ranks make the same number of calls.
    void write(hyperslab rows, std::span<std::uint8_t const> images, std::span<std::uint8_t const> labels);

    /// Writes checksums and attributes of the current split; every rank gives equal facts.
    void end(split_facts const& facts);

    /// Closes the file, makes it durable, and gives it its name.
    void close();

  private:
    dataset_writer(std::string path, writer_options options, std::shared_ptr<communicator> ranks);
    hdf5::place at(char const* array) const;
    void write_array(char const* array, hdf5::dataset const& to, hyperslab rows, hdf5::element type, void const* data,
                     bool checked);

    std::string path_;
    std::string partial_;
    writer_options options_;
    std::shared_ptr<communicator> ranks_;  ///< its own for one process alone, else the caller's, not owned
    bool created_ = false;
    hdf5::file file_;
    split_plan plan_;
    std::size_t block_ = 1;
    std::vector<std::uint64_t> checksums_[2];  ///< of images and labels, one a block; those of other ranks are 0 until end()
    hdf5::group group_;
    hdf5::dataset arrays_[4];
};

}  // namespace muster
