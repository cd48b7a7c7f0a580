// A spool of compressed blocks: holds each rank's blocks in a file until one process puts them into the dataset file in order.
//
// The place of a compressed chunk in an HDF5 file depends on the sizes of all chunks before it, so ranks cannot write them there
// side by side. In the spool each block has a slot large enough for the worst case; what it leaves is a hole.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "io/dataset/dataset_writer.hpp"

namespace muster {

class chunk_spool {
  public:
    /// Makes the file unless it is there. Throws errc::system.
    static void create(std::string const& path);

    /// Opens it. Throws errc::system.
    chunk_spool(std::string path, std::vector<split_plan> const& plans);

    /// Compresses and writes a block; returns the bytes that its samples take. Throws errc::io.
    std::uint64_t write(std::size_t split, std::size_t block, std::span<std::uint8_t const> images,
                        std::span<std::uint8_t const> labels);

    /// Reads a block back; false where what is there cannot be decompressed to it. Throws errc::io.
    bool read(std::size_t split, std::size_t block, std::uint64_t encoded_bytes, std::span<std::uint8_t> images,
              std::span<std::uint8_t> labels) const;

    /// Puts all blocks, whose encoded bytes are given for each split, into a file of create_layout(). Throws hdf5_error and as
    /// read().
    void unload(std::string const& dataset_file, std::vector<std::vector<std::uint64_t>> const& encoded_bytes) const;

    void close() { file_for_writing_.reset(); }

  private:
    struct slots {
        std::uint64_t first = 0;        ///< offset of the first slot
        std::size_t slot_bytes = 0;     ///< samples at worst, then labels
        std::size_t encoded_bytes = 0;  ///< samples at worst
        std::size_t chunk_bytes = 0;    ///< of samples, decoded; the last block is padded to it
    };
    std::uint64_t offset_of(std::size_t split, std::size_t block) const {
        return slots_[split].first + block * slots_[split].slot_bytes;
    }

    std::string path_;
    std::vector<split_plan> plans_;
    std::vector<slots> slots_;
    unique_fd file_;
    unique_fd file_for_writing_;
};

}  // namespace muster
