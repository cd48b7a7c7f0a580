#include "launch/wire/output_frame.hpp"

namespace muster::wire {

std::string encode(output_piece const& piece) {
    std::string frame;
    frame.reserve(1 + piece.bytes.size());
    frame.push_back(static_cast<char>(piece.what));
    frame.append(piece.bytes);
    return frame;
}

std::optional<output_piece> read_output(std::string_view frame) noexcept {
    if (frame.empty() || static_cast<unsigned char>(frame.front()) > static_cast<unsigned char>(output_piece::kind::err))
        return std::nullopt;
    return output_piece{static_cast<output_piece::kind>(frame.front()), frame.substr(1)};
}

}  // namespace muster::wire
