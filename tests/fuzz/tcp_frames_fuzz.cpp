// links: muster::comm
// Whatever calls a rank's port, or comes over a connection, or is given as a rank's address: read to something that is written to the same bytes, or refused.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "comm/tcp/handshake.hpp"
#include "comm/tcp/line.hpp"
#include "comm/tcp/listener.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    namespace tcp = muster::tcp;
    std::span<unsigned char const> const bytes(data, size);
    if (auto const frame = tcp::read_frame(std::as_bytes(bytes)))
        if (!std::ranges::equal(tcp::write_frame(*frame), std::as_bytes(bytes).first(tcp::frame_bytes))) std::abort();
    if (auto const greeting = tcp::read_greeting(bytes))
        if (!std::ranges::equal(tcp::write_greeting(*greeting), bytes)) std::abort();
    try {
        auto const place = tcp::parse_endpoint({reinterpret_cast<char const*>(data), size}, "input");
        if (tcp::parse_endpoint(tcp::to_text(place), "again") != place) std::abort();
    } catch (muster::error const&) {
    }
    return 0;
}
