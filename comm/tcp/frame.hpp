// The header of a message between two ranks, and its reader.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace muster::tcp {

/// What every message begins with. Both ends know the order of their messages, so that the fields of `data` only tell whether they agree.
struct frame {
    enum class kind : std::uint16_t {
        data = 1,
        left = 2,     ///< this end has destroyed its communicator; nothing follows
        gave_up = 3,  ///< it will send no more data; the bytes are its blame (write_blame)
        waits =
            4,  ///< it waits for others itself, in the collective of this sequence and signature: the bytes name them (write_blame)
    };
    kind what = kind::data;
    std::uint16_t step = 0;       ///< of a collective that goes in several
    std::uint32_t sequence = 0;   ///< of the collective, or of the sendrecv of these two ranks
    std::uint64_t signature = 0;  ///< signature_of()
    std::uint64_t count = 0;      ///< elements of the collective, or of this message where each has its own
    std::uint64_t bytes = 0;      ///< that follow
    bool operator==(frame const&) const = default;
};

inline constexpr std::size_t frame_bytes = 4 + 2 + 2 + 4 + 4 + 3 * 8;
inline constexpr std::size_t longest_blame = 2048;
using frame_text = std::array<std::byte, frame_bytes>;

frame_text write_frame(frame const& what) noexcept;

/// Nothing if the bytes, frame_bytes of them, are no header, or one of another kind than data with more than longest_blame behind it. Pure.
std::optional<frame> read_frame(std::span<std::byte const> bytes) noexcept;

}  // namespace muster::tcp
