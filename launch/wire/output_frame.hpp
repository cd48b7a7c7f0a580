// A piece of a rank's output as a frame between its shim and the launcher.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace muster::wire {

/// One byte for the kind and then the bytes as they are: output is not worth CBOR, which is read byte by byte. No message begins with
/// such a byte, since CBOR's for an array of two is 0x82.
struct output_piece {
    enum class kind : unsigned char {
        note = 0,  ///< a whole line of the shim's own, for standard error
        out = 1,   ///< of the rank's standard output
        err = 2,   ///< of its standard error
    };
    kind what = kind::out;
    std::string_view bytes;
    bool operator==(output_piece const&) const = default;
};

std::string encode(output_piece const& piece);

/// Nothing if the frame is none of these, but perhaps a message. The piece refers to the frame.
std::optional<output_piece> read_output(std::string_view frame) noexcept;

constexpr std::size_t largest_output_bytes = 64u << 10;  ///< of one piece

}  // namespace muster::wire
