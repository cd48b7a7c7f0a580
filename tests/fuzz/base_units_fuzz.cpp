// links: muster::base
// iterations: 50000
// Any bytes as a size, a duration and a line for a caret: a value within bounds or a parse_error that can be printed.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    try {
        if (muster::parse_bytes(text) >> 63 != 0) __builtin_trap();
    } catch (muster::parse_error const& e) {
        if (std::string_view(e.what()).find('^') == std::string_view::npos) __builtin_trap();
    }
    try {
        double const seconds = muster::parse_duration(text).count();
        if (!(seconds >= 0) || !std::isfinite(seconds)) __builtin_trap();
        muster::format_walltime(muster::duration(seconds));
    } catch (muster::parse_error const& e) {
        if (e.column() > size + 1) __builtin_trap();
    }
    return 0;
}
