// The plan of a copy: divides files into chunks and gathers chunks in packs, the unit that is read, sent and written.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "io/tree/file_list.hpp"

namespace muster {

inline constexpr std::uint64_t default_chunk_bytes = std::uint64_t{4} << 20;
inline constexpr std::size_t most_files_in_a_pack = 512;

/// The chunks of all files of a list, numbered through. An empty file has one chunk, of no bytes; folders and links have none.
class chunk_plan {
  public:
    chunk_plan() = default;
    chunk_plan(file_list const& list, std::uint64_t chunk_bytes);

    std::uint64_t chunk_bytes() const noexcept { return chunk_bytes_; }
    std::size_t chunks() const noexcept { return first_.back(); }
    std::size_t first_of(std::size_t file) const noexcept { return first_[file]; }
    std::size_t count_of(std::size_t file) const noexcept { return first_[file + 1] - first_[file]; }

  private:
    std::uint64_t chunk_bytes_ = default_chunk_bytes;
    std::vector<std::size_t> first_{0};
};

/// Returns how many chunks a file of `size` bytes has.
std::size_t chunks_of_size(std::uint64_t size, std::uint64_t chunk_bytes) noexcept;

/// One chunk of one file.
struct piece {
    std::uint32_t file = 0;
    std::uint64_t chunk = 0;  ///< as chunk_plan numbers it
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    bool operator==(piece const&) const = default;
};

/// Pieces of at most chunk_bytes together: one chunk of a large file, or many small files.
struct pack {
    std::vector<piece> pieces;
    std::uint64_t bytes = 0;
    bool operator==(pack const&) const = default;
};

/// The chunks with `needed[chunk] != 0`, in the order of the list. Pure: the same on every rank that gives the same.
std::vector<pack> make_packs(file_list const& list, chunk_plan const& plan, std::span<std::uint8_t const> needed);

/// The files of part `part` of `parts`: consecutive files of about equal bytes, with all folders and links. Every file is in
/// exactly one part. Pure.
file_list part_of_list(file_list const& list, int part, int parts);

// The block size of the file system that a source lies on: reads Lustre's stripe and GPFS's block.

/// The bytes of a stripe or block of the file system that `path` lies on; 0 where reads of any size do. Lustre's stripe is what
/// `lfs getstripe`, found along PATH, prints. Never fails: what cannot be found is 0.
std::uint64_t find_source_blocks(std::string const& path, environment const& variables);

/// The number that `lfs getstripe -S` printed; 0 if it is not a number. Pure.
std::uint64_t stripe_of_text(std::string_view text) noexcept;

/// The bytes of a chunk of a copy from a source of such blocks: their smallest multiple that is not below the default; the default where the
/// blocks are not known or larger than 64 MiB. Pure.
std::uint64_t chunk_bytes_for(std::uint64_t block_bytes) noexcept;

}  // namespace muster
