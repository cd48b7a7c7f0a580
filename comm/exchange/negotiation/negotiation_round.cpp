#include "comm/exchange/negotiation/negotiation_round.hpp"

#include <algorithm>
#include <utility>

#include "comm/backend/keep_forever.hpp"
#include "comm/exchange/request/request_codec.hpp"

namespace muster::detail {

namespace {

/// Messages are padded to 64, 128, 256, … bytes: 1, 2, 3, …; 0 for none.
std::uint8_t size_class(std::size_t bytes) {
    std::uint8_t of = 0;
    if (bytes != 0)
        for (of = 1; (std::size_t{64} << (of - 1)) < bytes;) ++of;
    return of;
}
std::size_t padded_bytes(std::uint8_t of) {
    return of == 0 ? 0 : std::size_t{64} << (of - 1);
}

tensor_view view_of_bytes(std::vector<std::byte>& of) {
    return {of.data(), of.size(), dtype::u8, memory_kind::host};
}

}  // namespace

void negotiation_round::begin(std::size_t positions, std::vector<exchange_request> const& to_announce) {
    message_.clear();
    if (!to_announce.empty()) message_ = encode(to_announce);
    mine_.assign(header_bytes + positions, not_yet);
    mine_[announces] = static_cast<std::uint8_t>(255 - size_class(message_.size()));
}

void negotiation_round::cast_everywhere(vote what) noexcept {
    std::fill(mine_.begin() + header_bytes, mine_.end(), what);
}

operation negotiation_round::agree(communicator& ranks) {
    all_.resize(mine_.size());
    return ranks.allreduce("negotiation", view_of(std::span(mine_)), view_of(std::span(all_)), reduction::min);
}

bool negotiation_round::has_announcements() const noexcept {
    return announced_bytes() != 0;
}

std::size_t negotiation_round::announced_bytes() const noexcept {
    return padded_bytes(static_cast<std::uint8_t>(255 - all_[announces]));
}

operation negotiation_round::gather(communicator& ranks) {
    bool const has_none = message_.empty();
    message_.resize(announced_bytes());
    if (has_none) std::fill(message_.begin(), message_.end(), std::byte{0});  // none, encoded
    messages_.resize(message_.size() * static_cast<std::size_t>(ranks.size()));
    return ranks.allgather("negotiation", view_of_bytes(message_), view_of_bytes(messages_));
}

std::vector<exchange_request> negotiation_round::announcements_of(int rank) const {
    return decode_requests(std::span(messages_).subspan(static_cast<std::size_t>(rank) * message_.size(), message_.size()));
}

void negotiation_round::leak() noexcept {
    keep_while_ranks_are_late(std::move(*this));
}

}  // namespace muster::detail
