#include "comm/tcp/frame.hpp"

#include <cstring>

namespace muster::tcp {

namespace {

constexpr std::uint32_t magic = 0x6d746370;  // another order of bytes is seen by it

}  // namespace

frame_text write_frame(frame const& what) noexcept {
    frame_text bytes{};
    std::byte* to = bytes.data();
    auto const put = [&](auto const& value) {
        std::memcpy(to, &value, sizeof value);
        to += sizeof value;
    };
    put(magic);
    put(what.what);
    put(what.step);
    put(what.sequence);
    put(std::uint32_t{0});
    put(what.signature);
    put(what.count);
    put(what.bytes);
    return bytes;
}

std::optional<frame> read_frame(std::span<std::byte const> bytes) noexcept {
    if (bytes.size() < frame_bytes) return std::nullopt;
    std::byte const* from = bytes.data();
    auto const get = [&](auto& value) {
        std::memcpy(&value, from, sizeof value);
        from += sizeof value;
    };
    std::uint32_t mark = 0, unused = 0;
    frame what;
    get(mark);
    get(what.what);
    get(what.step);
    get(what.sequence);
    get(unused);
    get(what.signature);
    get(what.count);
    get(what.bytes);
    if (mark != magic || unused != 0) return std::nullopt;
    switch (what.what) {
        case frame::kind::data: return what;
        case frame::kind::left:
        case frame::kind::waits:
        case frame::kind::gave_up: return what.bytes <= longest_blame ? std::optional(what) : std::nullopt;
    }
    return std::nullopt;
}

}  // namespace muster::tcp
