// links: muster::launch
// iterations: 20000
// Any bytes as a CPU list and as CUDA_VISIBLE_DEVICES: a set that prints and reads back the same, or an error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/cpuset.hpp"
#include "base/error.hpp"
#include "launch/hardware/topology.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    try {
        auto const set = muster::cpuset::from_list(text);
        if (!(muster::cpuset::from_list(set.to_list()) == set)) __builtin_trap();
    } catch (muster::parse_error const&) {
    }
    static std::vector<muster::gpu> const gpus{{0, "GPU-aa", "0000:01:00.0", "", 0}, {1, "GPU-ab", "0000:02:00.0", "", 0}};
    try {
        if (muster::select_gpus(gpus, text).size() > gpus.size()) __builtin_trap();
    } catch (muster::error const& e) {
        if (e.code() != muster::errc::placement) __builtin_trap();
    }
    return 0;
}
