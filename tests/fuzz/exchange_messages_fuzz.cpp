// links: muster::comm
// Whatever another rank sends, or lies in a file of a flight recorder or a timeline: decoded or refused; what was decoded is
// encoded to something that decodes to the same, and explained without harm. What begins with "{" is taken for a file.
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "comm/exchange/observe/flight_recorder.hpp"
#include "comm/exchange/request/request_codec.hpp"
#include "base/trace/explain.hpp"
#include "base/trace/merge.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    try {
        if (!text.starts_with('{')) {
            auto const bytes = muster::encode(muster::decode_requests(std::as_bytes(std::span(data, size))));
            if (muster::encode(muster::decode_requests(bytes)) != bytes) std::abort();  // bytes, since a factor may be no number
            return 0;
        }
        try {
            muster::move_line(text, 1.5, 3);
        } catch (std::exception const&) {
        }
        auto const dump = muster::parse_flight_dump(std::string(text), "input");
        muster::explain(std::span(&dump, 1));
    } catch (muster::error const&) {
    }
    return 0;
}
