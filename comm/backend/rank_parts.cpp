#include "comm/backend/rank_parts.hpp"

namespace muster::detail {

segmented::segmented(collective const& what, int ranks, std::size_t segment_bytes) noexcept
    : elements_(what.in.count),
      element_bytes_(size_of(what.in.type)),
      ranks_(ranks),
      scatters_(what.what == collective::kind::reducescatter) {
    std::size_t const most = segment_bytes / element_bytes_;
    each_ = std::max<std::size_t>(scatters_ ? most / static_cast<std::size_t>(ranks) : most, 1);
    total_ = scatters_ ? share_of(elements_, ranks, 0).count : elements_;
}

element_range segmented::part(std::size_t segment, int rank) const noexcept {
    std::size_t const first = segment * each_, bound = std::min(total_, first + each_);
    if (scatters_) {
        element_range const share = share_of(elements_, ranks_, rank);
        std::size_t const begin = std::min(share.count, first);
        return {share.first + begin, std::min(share.count, bound) - begin};
    }
    element_range const part = line_share_of(bound - first, element_bytes_, ranks_, rank);
    return {first + part.first, part.count};
}

std::vector<rank_transfer> transfers_of(collective const& what, int ranks) {
    std::vector<rank_transfer> all(static_cast<std::size_t>(ranks));
    if (what.what == collective::kind::sendrecv) {
        all[static_cast<std::size_t>(what.root)] = {{0, what.in.count}, {0, what.out.count}};
        return all;
    }
    bool const is_even = what.receive_counts.empty(), sends_parts = what.what == collective::kind::alltoall;
    std::size_t sent = 0, received = 0;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        all[rank].sent = sends_parts ? element_range{sent, what.send_counts[rank]} : element_range{0, what.in.count};
        all[rank].received = {received, is_even ? what.in.count : what.receive_counts[rank]};
        sent += all[rank].sent.count;
        received += all[rank].received.count;
    }
    return all;
}

}  // namespace muster::detail
