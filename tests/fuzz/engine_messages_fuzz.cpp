// links: muster::launch
// Whatever a shim or another program sends is decoded or refused, and what was decoded is encoded to something that decodes to the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "launch/wire/messages.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    try {
        auto const bytes = muster::wire::encode(muster::wire::decode({reinterpret_cast<char const*>(data), size}));
        if (muster::wire::encode(muster::wire::decode(bytes)) != bytes) std::abort();  // bytes, since a duration may be no number
    } catch (muster::error const&) {
    }
    return 0;
}
