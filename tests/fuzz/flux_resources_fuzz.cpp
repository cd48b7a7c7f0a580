// links: muster::launch
// iterations: 20000
// Any bytes as a resource set of Flux: nodes, or an error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "launch/scheduler/flux.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    try {
        auto const resources = muster::parse_flux_resources(text, "fuzz");
        if (resources.nodes.empty()) __builtin_trap();
        for (auto const& n : resources.nodes)
            if (n.name.empty() || n.slots < 1 || n.gpus.value_or(-1) < 0) __builtin_trap();
    } catch (muster::error const& e) {
        if (e.code() != muster::errc::parse) __builtin_trap();
    }
    return 0;
}
