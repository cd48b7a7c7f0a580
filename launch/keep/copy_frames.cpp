#include "launch/keep/copy_frames.hpp"

#include <exception>

#include "base/codec/codec.hpp"

namespace muster::wire {

std::string encode(copy_frame const& one) {
    return codec::encode(one);
}

std::optional<copy_frame> read_copy_frame(std::string_view frame) noexcept try {
    copy_frame one;
    codec::reader from(frame);
    from >> one;
    from.end();
    return one;
} catch (std::exception const&) {
    return std::nullopt;
}

}  // namespace muster::wire
