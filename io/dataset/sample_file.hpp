// A file of samples: reads the samples of a split from any thread, contiguous or in chunks, deflated or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "io/dataset/dataset.hpp"

namespace muster {

/// HDF5 is asked once where the bytes lie; after that they are read by pread, and inflated by zlib, without its lock. All functions
/// but the constructor are thread safe.
class sample_file {
  public:
    /// Needs dataset_info::read_by_chunks. Throws errc::system (no such file), errc::invalid_data if the file ends before its
    /// samples do, hdf5_error.
    explicit sample_file(dataset const& from);

    /// Samples `rows`, of image_bytes() each, into `into`. Fastest for whole chunks. Throws errc::io, and errc::invalid_data for a
    /// file that was cut short meanwhile or whose chunk cannot be inflated.
    void read(hyperslab rows, std::uint8_t* into) const;

    /// Tells the kernel that these are wanted soon.
    void will_need(hyperslab rows) const noexcept;

    std::size_t sample_bytes() const noexcept { return sample_bytes_; }

    /// Returns where in a page of `page_bytes` the samples from `row` on begin: bytes are copied faster to a place like it. 0 where they
    /// are inflated.
    std::size_t place_in_page(std::uint64_t row, std::size_t page_bytes) const noexcept;

  private:
    /// Bytes of the file: those of the chunk that `row` lies in, or of all rows.
    hdf5::stored_chunk const& chunk_of(std::uint64_t row) const noexcept { return chunks_[row / chunk_samples_]; }
    void read_plain(hdf5::stored_chunk const& from, std::uint64_t skipped_bytes, std::size_t bytes, std::uint8_t* into) const;
    void read_deflated(std::uint64_t chunk, hyperslab within, std::uint8_t* into) const;

    std::string path_;
    unique_fd file_;
    std::size_t samples_;
    std::size_t sample_bytes_;
    std::size_t chunk_samples_;  ///< all samples where the file is contiguous, as if it were one chunk
    std::vector<hdf5::stored_chunk> chunks_;
};

}  // namespace muster
