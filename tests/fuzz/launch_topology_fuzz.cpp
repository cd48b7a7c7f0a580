// links: muster::launch
// iterations: 300
// Any bytes as an hwloc XML file: a machine with cores, or an error. A child reads each one first, so there are fewer of them.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "launch/hardware/discover_topology.hpp"
#include "launch/placement/bind_ranks.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string const xml(reinterpret_cast<char const*>(data), size);
    try {
        auto const t = muster::read_topology(xml, "fuzz.xml");
        if (t.cores.empty()) __builtin_trap();
        int const ranks = t.gpus.empty() ? 1 : static_cast<int>(t.gpus.size());
        for (auto const& b : muster::bind_ranks(t, {}, ranks))
            if (b.cores.empty()) __builtin_trap();
    } catch (muster::error const& e) {
        if (e.code() != muster::errc::invalid_data) __builtin_trap();
    }
    return 0;
}
