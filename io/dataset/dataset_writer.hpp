// Datasets in HDF5 files of muster's format (docs/dataset-format.md): writes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/dataset/image_shape.hpp"
#include "io/hdf5/element_type.hpp"
#include "io/hdf5/hyperslab.hpp"

namespace muster {

class communicator;

struct writer_options {
    std::string name;                                    ///< of the dataset, for people
    std::size_t alignment_bytes = std::size_t{1} << 20;  ///< arrays begin at a multiple: the file system's stripe or block
    bool replace = false;                                ///< whether a file that exists may be replaced
    bool durable = true;                                 ///< close() waits until the file is on disk
    std::string command;                                 ///< the command line, to be kept in the file; may be empty
    /// Says what the contents are made from, in a few words. A writer that was killed is taken up again by one of the same identity
    /// and plans, with what it had written; empty: every writer begins anew.
    std::string identity;
    bool restart = false;  ///< what a writer that was killed has left is dropped
    bool operator==(writer_options const&) const = default;
};

struct split_plan {
    std::string split;  ///< "train", "test"; a name of letters, digits, '-', '_' and '.'
    std::size_t samples = 0;
    image_shape shape;
    std::size_t chunk_samples = 0;  ///< 0: contiguous
    element_type type = element_type::u8;
    std::size_t classes = 0;               ///< every label is below; 0: the samples have no labels, or targets
    bool targets = false;                  ///< labels are targets of a regression, of float32
    std::vector<std::string> class_names;  ///< empty, or one a class
    std::vector<std::string> columns;      ///< of a table: what the elements of a row are called; empty: not known
    unsigned gzip_level = 0;               ///< 1 to 9: the samples are compressed, a block of checksums a chunk
    std::string source_images;             ///< names of the files it is made from; may be empty
    std::string source_labels;
    std::vector<std::string> sources;  ///< "DIGEST  BYTES  NAME" of each; may be empty

    std::size_t image_bytes() const noexcept { return shape.elements() * bytes_of(type); }
    std::optional<element_type> label_type() const noexcept;
    std::size_t label_bytes() const noexcept;    ///< 1, 2 or 4 by the number of classes; 4 of targets; 0 without labels
    std::size_t block_samples() const noexcept;  ///< in a block of checksums
    bool operator==(split_plan const&) const = default;
};

/// Writes one file: write() for all samples of all splits, in any order, then close(). With a communicator, constructor and
/// close() are collective, and each rank writes its own samples, at their places in the file and without waiting for another;
/// alone() writes for this process. Either way the file has the same bytes. It grows under PATH.partial and gets its name only in
/// close(): a writer destroyed before leaves nothing, and the file that had the name as it was; a writer that was killed leaves
/// PATH.partial and its journal (io/dataset/write_journal.hpp), by which the next one goes on. A second writer of the same path
/// is refused. One thread at a time. Errors: errc::usage (the file exists, an impossible plan), errc::unavailable (another
/// writes it), errc::system, errc::io, hdf5_error; from a collective call all ranks throw if one fails.
class dataset_writer {
  public:
    /// Alone.
    dataset_writer(std::string path, std::vector<split_plan> plans, writer_options options);
    /// Collective. The communicator must outlive the writer.
    dataset_writer(std::string path, std::vector<split_plan> plans, writer_options options, communicator& ranks);
    dataset_writer(dataset_writer const&) = delete;
    dataset_writer& operator=(dataset_writer const&) = delete;
    ~dataset_writer();

    std::vector<split_plan> const& plans() const noexcept;

    /// Returns what this rank is to write of a split: runs of whole blocks of checksums, in order, without what an earlier writer did.
    std::vector<hyperslab> share(std::size_t split) const;
    std::size_t block_samples(std::size_t split = 0) const { return plans()[split].block_samples(); }

    /// Bytes of samples and labels that an earlier writer had written, over all ranks.
    std::uint64_t found_bytes() const noexcept;

    /// Writes samples `rows` of this rank's share, which begin at a block's border and end at one or at the split's end: their
    /// elements, and their labels in label_bytes() each, least significant byte first. Not collective.
    void write(std::size_t split, hyperslab rows, std::span<std::uint8_t const> images, std::span<std::uint8_t const> labels);

    /// Writes the checksums, closes the file, makes it durable, and gives it its name.
    void close();

  private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace muster
