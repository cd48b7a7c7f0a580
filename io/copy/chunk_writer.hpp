// A writer of chunks: puts the bytes of pieces into the growing files of a target, and takes their checksums.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/unique_fd.hpp"
#include "base/unique_handle.hpp"
#include "io/copy/copy_target.hpp"
#include "io/tree/chunk_plan.hpp"
#include "io/tree/folder_cache.hpp"

namespace muster {

struct running_checksum_traits {
    using type = void*;
    static type null() noexcept { return nullptr; }
    static void close(type state) noexcept;
};

class running_checksum {
  public:
    running_checksum();  ///< Throws std::bad_alloc.
    void reset() noexcept;
    void add(std::span<std::byte const> bytes) noexcept;
    std::uint64_t value() const noexcept;

  private:
    unique_handle<running_checksum_traits> state_;
};

/// Not thread safe: each thread has its own. Target and list must live longer. A file of one chunk is made here, with its mode and
/// time at its end; larger ones are there already (copy_target::begin).
class chunk_writer {
  public:
    chunk_writer(copy_target const& target, file_list const& list, chunk_plan const& plan);

    /// All throw errc::system.
    void begin(piece const& next);
    void write(std::span<std::byte const> bytes);
    /// The checksum of the piece's bytes as they were given. They are not read back.
    std::uint64_t end();

  private:
    std::string full_path() const;

    copy_target const& target_;
    file_list const& list_;
    chunk_plan const& plan_;
    folder_cache folders_;
    running_checksum checksum_;
    piece piece_;
    std::uint64_t done_ = 0;
    std::uint32_t open_file_ = 0;
    bool alone_ = false;  ///< the piece is a whole file
    unique_fd file_;
};

}  // namespace muster
