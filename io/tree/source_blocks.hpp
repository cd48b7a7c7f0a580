// The block size of the file system that a source lies on: reads Lustre's stripe and GPFS's block.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/environment.hpp"

namespace muster {

struct source_blocks {
    std::uint64_t bytes = 0;  ///< of a stripe or block; 0 where reads of any size do
    std::string kind;         ///< "Lustre", "GPFS", or nothing
    bool operator==(source_blocks const&) const = default;
};

/// Of the file or folder at `path`. Lustre's stripe is what `lfs getstripe`, found along PATH, prints. Never fails: what cannot be found is 0.
source_blocks find_source_blocks(std::string const& path, environment const& variables);

/// The number that `lfs getstripe -S` printed; 0 if it is not a number. Pure.
std::uint64_t stripe_of_text(std::string_view text) noexcept;

/// Chunks of a copy from such a source: the smallest multiple of its blocks that is not below the default; the default where the
/// blocks are not known or larger than 64 MiB. Pure.
std::uint64_t chunk_bytes_for(source_blocks const& blocks) noexcept;

}  // namespace muster
