// A reader and a writer of chunks: the one reads pieces of listed files and sees whether a file changed since it was listed, the other puts them into a target.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "io/copy/copy_target.hpp"
#include "io/dataset/checksum.hpp"
#include "io/tree/chunk_plan.hpp"
#include "io/tree/folder_files.hpp"

namespace muster {

/// A file that is not what it was when it was listed: its size or time differs, or it is gone.
class source_changed : public error {
  public:
    explicit source_changed(std::string const& message) : error(errc::io, message) {}
};

/// It is not thread safe: each thread has one. The list must live longer.
class chunk_reader {
  public:
    explicit chunk_reader(file_list const& list);

    /// Opens the file of a piece. All of these throw errc::system, and source_changed.
    void begin(piece const& next);
    /// Fills `block` from the piece, as far as the piece goes; returns how much that is, 0 at its end.
    std::size_t read(std::span<std::byte> block);
    /// Checks that the file is still what was listed.
    void end();

  private:
    [[noreturn]] void refuse(std::string_view how) const;

    file_list const& list_;
    std::vector<unique_fd> roots_;
    std::vector<folder_cache> folders_;
    piece piece_;
    std::uint64_t done_ = 0;
    std::uint32_t open_file_ = 0;
    unique_fd file_;
};

// A writer of chunks: puts the bytes of pieces into the growing files of a target, and takes their checksums.

/// It is not thread safe: each thread has one. Target and list must live longer. A file of one chunk is made here, with its mode and
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
    xxh3_64_stream checksum_;
    piece piece_;
    std::uint64_t done_ = 0;
    std::uint32_t open_file_ = 0;
    bool alone_ = false;  ///< the piece is a whole file
    unique_fd file_;
};

}  // namespace muster
