// The frames by which one keeper sends a copy of a rank's state to another: its head, its pieces in order, its end; and the answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pmix/kept_layout.hpp"

namespace muster::wire {

/// No message: a state is not worth CBOR, which is read byte by byte. Numbers are little-endian.
struct copy_frame {
    enum class kind : unsigned char {
        head = 0x20,    ///< of the copy that follows
        piece = 0x21,   ///< the next bytes of it
        end = 0x22,     ///< it was the last one
        taken = 0x23,   ///< the answer to a piece
        kept = 0x24,    ///< to the end: it is whole there
        refused = 0x25  ///< to any of them: it is not, and why
    };
    kind what = kind::taken;
    bool for_neighbour = false;  ///< of a head: among those of other nodes' ranks; else it is of a rank that is to run there
    std::uint32_t part = 0;
    std::uint64_t number = 0, step = 0, size = 0, sum = 0;
    std::string_view bytes = {};  ///< of a piece; of a refusal, why
    kept::origin by = {};
    bool operator==(copy_frame const&) const = default;
};

constexpr std::size_t largest_piece_bytes = 256u << 10;

std::string encode(copy_frame const& one);
/// Nothing if it is none. Refers to `frame`.
std::optional<copy_frame> read_copy_frame(std::string_view frame) noexcept;

}  // namespace muster::wire
