// links: muster::comm
// Whatever another rank sends: decoded or refused, and what was decoded is encoded to something that decodes to the same.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/error.hpp"
#include "comm/exchange/request_codec.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    try {
        auto const bytes = muster::encode(muster::decode_requests(std::as_bytes(std::span(data, size))));
        if (muster::encode(muster::decode_requests(bytes)) != bytes) std::abort();  // bytes, since a factor may be no number
    } catch (muster::error const&) {
    }
    return 0;
}
