// A reader of chunks: reads pieces of listed files and sees whether a file changed since it was listed.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "io/tree/chunk_plan.hpp"
#include "io/tree/folder_cache.hpp"

namespace muster {

/// A file that is not what it was when it was listed: its size or time differs, or it is gone.
class source_changed : public error {
  public:
    explicit source_changed(std::string const& message) : error(errc::io, message) {}
};

/// Not thread safe: each thread has its own. The list must live longer.
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

}  // namespace muster
