// The parts of a collective's tensors that each rank reduces, or exchanges with another rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "comm/backend/collective_backend.hpp"
#include "comm/tensor/tensor.hpp"

namespace muster::detail {

/// Returns the part of `rank` where shares begin on a cache line, so that the last ones of a small tensor may be empty. Pure.
inline element_range line_share_of(std::size_t count, std::size_t element_bytes, int ranks, int rank) noexcept {
    auto const all = static_cast<std::size_t>(ranks);
    std::size_t const per_line = 64 / element_bytes;
    std::size_t const most = ((count + all - 1) / all + per_line - 1) / per_line * per_line;
    std::size_t const first = std::min(count, most * static_cast<std::size_t>(rank));
    return {first, std::min(most, count - first)};
}

/// A reduction in segments: every rank reduces a part of each. Segments of a reducescatter are pieces of every rank's share.
class segmented {
  public:
    segmented() = default;
    segmented(collective const& what, int ranks, std::size_t segment_bytes) noexcept;

    std::size_t count() const noexcept { return (total_ + each_ - 1) / each_; }
    element_range part(std::size_t segment, int rank) const noexcept;

  private:
    std::size_t elements_ = 0, element_bytes_ = 1;
    int ranks_ = 1;
    bool scatters_ = false;
    std::size_t each_ = 1, total_ = 0;  ///< elements of a segment and of all; of a reducescatter: of each rank's share
};

/// Holds what this rank sends to another one and receives from it: parts of `in` and of `out`.
struct rank_transfer {
    element_range sent, received;
};

/// Returns them for each rank in an alltoall, an allgather or a sendrecv. Pure.
std::vector<rank_transfer> transfers_of(collective const& what, int ranks);

}  // namespace muster::detail
