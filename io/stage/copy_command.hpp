#pragma once
#include <cstdint>
#include <optional>

#include "io/copy/copy_tree.hpp"

namespace muster::stage {

// The step of copy that unpacks the archives among its sources, on one node.

/// Unpacks each source that is an archive, after it has been copied, to DST/NAME, which appears when it is whole. What is there from
/// the same archive stays; what is there from an older one is replaced. Returns how many were unpacked. Throws errc::usage if none of
/// the sources is an archive, or if DST/NAME is there from something else, and as unpack_archive(), whose limit of bytes is `most_bytes`
/// or what suits the archive's size; what was unpacked until then is removed.
std::uint64_t unpack_sources(copy_request const& request, std::optional<std::uint64_t> most_bytes);

}  // namespace muster::stage
