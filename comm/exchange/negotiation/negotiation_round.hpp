// A round of negotiation: the bytes that the ranks of a process set tell each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/exchange/request/exchange_request.hpp"

namespace muster::detail {

/// First one small allreduce (minimum) of a byte for each position of the cache: 2 - this rank has submitted it, or has joined; 1 - not
/// yet; 0 - it no longer holds. Bytes before these say what a rank waits for and how many bytes of announcements there are; if there are
/// any, an allgather of these follows. Its memory is used again in the next round.
class negotiation_round {
  public:
    enum vote : std::uint8_t { outdated = 0, not_yet = 1, submitted = 2 };
    /// Statements about a rank as a whole; all ranks agree to one or not.
    enum statement : std::size_t {
        waits = 1,  ///< this rank submits nothing more until something that it has submitted ends
        told = 2,   ///< all that it has submitted is announced in full
    };

    void begin(std::size_t positions, std::vector<exchange_request> const& to_announce);
    void cast(std::size_t position, vote what) noexcept { mine_[header_bytes + position] = what; }
    void cast_everywhere(vote what) noexcept;
    void state(statement what) noexcept { mine_[what] = yes; }
    operation agree(communicator& ranks);

    // Once agreed.
    std::size_t positions() const noexcept { return all_.size() - header_bytes; }
    vote result(std::size_t position) const noexcept { return static_cast<vote>(all_[header_bytes + position]); }
    bool all_state(statement what) const noexcept { return all_[what] == yes; }
    /// Some rank announces something.
    bool has_announcements() const noexcept;
    operation gather(communicator& ranks);

    // Once gathered.
    std::vector<exchange_request> announcements_of(int rank) const;

    /// Keeps the memory for as long as ranks that are late may write to it.
    void leak() noexcept;

  private:
    static constexpr std::size_t header_bytes = 8;  // some are kept for later
    static constexpr std::size_t announces = 0;     // how many bytes there are to announce
    static constexpr std::uint8_t yes = 2;
    std::size_t announced_bytes() const noexcept;

    std::vector<std::uint8_t> mine_, all_;
    std::vector<std::byte> message_, messages_;
};

}  // namespace muster::detail
