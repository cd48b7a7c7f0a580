// The frames in which one keeper sends a copy of a rank's state to another: its head, its pieces in order, its end; and the
// answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pmix/kept_layout.hpp"

namespace muster::wire {

/// These are not messages: they refer to the bytes of a state, and do not copy them.
struct copy_frame {
    enum class kind : unsigned char {
        head = 0x20,    ///< describes the copy that follows
        piece = 0x21,   ///< its next bytes
        end = 0x22,     ///< the last piece was sent
        taken = 0x23,   ///< answers a piece
        kept = 0x24,    ///< answers the end: the copy is whole there
        refused = 0x25  ///< answers any of them: the copy is not kept, and why
    };
    kind what = kind::taken;
    bool for_neighbour = false;  ///< in a head: put it among the copies of other nodes' ranks; otherwise its rank will run there
    std::uint32_t part = 0;
    std::uint64_t number = 0, step = 0, size = 0, sum = 0;
    std::string_view bytes = {};  ///< a piece's bytes, or the reason of a refusal
    kept::origin by = {};
    bool operator==(copy_frame const&) const = default;
};

constexpr std::size_t largest_piece_bytes = 256u << 10;

std::string encode(copy_frame const& one);
/// Returns nothing for any other frame. Refers to `frame`.
std::optional<copy_frame> read_copy_frame(std::string_view frame) noexcept;

}  // namespace muster::wire
