// links: muster::comm
// iterations: 2000
// A file that is meant to be a flight recorder's: read or refused; explained without harm.
#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "comm/observe/explain.hpp"
#include "comm/observe/flight_recorder.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    try {
        auto const dump = muster::parse_flight_dump({reinterpret_cast<char const*>(data), size}, "input");
        muster::explain(std::span(&dump, 1));
    } catch (muster::error const&) {
    }
    return 0;
}
