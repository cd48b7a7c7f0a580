// links: muster::pmix
// Any packet between a rank and its launcher: a message that is encoded as it was, or an error of the family.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "pmix/member_message.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    try {
        auto const read = muster::elastic::decode({reinterpret_cast<char const*>(data), size});
        if (muster::elastic::decode(muster::elastic::encode(read)) != read) std::abort();
    } catch (muster::error const&) {
    }
    return 0;
}
