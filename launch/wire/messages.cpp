#include "launch/wire/messages.hpp"

#include "base/codec/codec.hpp"
#include "base/throw_error.hpp"

namespace muster::wire {

namespace {

/// The first byte of a message. No other frame begins with it: see frame_channel.hpp.
constexpr unsigned char mark = 0x80;

}  // namespace

std::string encode(message const& m) {
    return codec::encode(mark, m);
}

message decode(std::string_view bytes) try {
    codec::reader from(bytes);
    if (auto const first = from.get<unsigned char>(); first != mark) codec::fail_by_value(first);
    message m;
    from >> m;
    // A shim of another version may say more of itself: the launcher then names both versions.
    if (!std::holds_alternative<hello>(m)) from.end();
    return m;
} catch (error const& problem) {
    throw_error(errc::invalid_data, "not a message of muster ({} bytes): {}", bytes.size(), problem.what());
}

}  // namespace muster::wire
