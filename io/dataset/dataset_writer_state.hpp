// The state of a dataset_writer: what is planned, found from an earlier writer, and written so far.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "io/dataset/chunk_spool.hpp"
#include "io/dataset/dataset_writer.hpp"
#include "io/dataset/file_layout.hpp"
#include "io/dataset/file_ranks.hpp"
#include "io/dataset/write_journal.hpp"

namespace muster {

/// A split while it is written.
struct written_split {
    std::size_t first_block = 0;  ///< in the journal
    std::size_t blocks = 0;
    split_contents contents;  ///< checksums of other ranks' blocks are 0 until close()
    std::vector<std::int32_t> done;
};

/// Its functions are those of dataset_writer, and their steps. open(), gather() and close() are collective.
struct dataset_writer::state {
    state(std::string path_, std::vector<split_plan> plans_, writer_options options_, std::shared_ptr<communicator> ranks_);

    ~state();

    bool first() const { return ranks->rank() == 0; }
    std::string fresh() const { return partial + ".fresh"; }
    std::string spool_path() const { return partial + ".spool"; }
    bool spooled() const {
        return std::any_of(plans.begin(), plans.end(), [](split_plan const& plan) { return plan.gzip_level != 0; });
    }

    void open();

    /// Rank 0: locks, and makes the file or takes the one that is there. Returns whether there is one to go on with.
    bool prepare();

    /// Plans are part of it: with other ones the blocks lie elsewhere.
    std::string identity_of_all() const;

    void share_layout();

    hyperslab rows_of(std::size_t split, std::size_t block) const {
        std::size_t const size = plans[split].block_samples();
        return intersect({block * size, size}, {0, plans[split].samples});
    }

    /// Finds what an earlier writer did, each rank in its part: a block counts whose bytes are those that the journal tells of.
    void take_up();

    void take_up_block(std::size_t split, std::size_t block);

    void note(std::size_t split, std::size_t block, block_record const& record, std::span<std::uint8_t const> image_data);

    void read_array(array_place const& place, hyperslab rows, std::span<std::uint8_t> out) const;
    void write_array(array_place const& place, hyperslab rows, std::span<std::uint8_t const> bytes) const;

    std::vector<hyperslab> share(std::size_t split) const;

    void write(std::size_t split, hyperslab rows, std::span<std::uint8_t const> image_data,
               std::span<std::uint8_t const> label_data);

    void close();

    /// All ranks' checksums and ranges on every rank.
    void gather();

    void complete();

    std::string path;
    std::string partial;
    std::vector<split_plan> plans;
    writer_options options;
    std::shared_ptr<communicator> ranks;  ///< its own for one process alone, else the caller's, not owned
    bool owner = false;                   ///< of the journal's lock: what is left is this process' to remove
    bool finished = false;
    write_journal journal;
    file_layout layout;
    unique_fd file;
    std::optional<chunk_spool> spool;  ///< of compressed blocks
    std::vector<written_split> splits;
    std::uint64_t found = 0;
    std::vector<std::uint8_t> images;  ///< of take_up_block()
    std::vector<std::uint8_t> labels;
};

}  // namespace muster
