// links: muster::io
// iterations: 10000
// Any bytes as a NumPy array.
#include "source_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    muster::fuzz::read_source({data, size}, {.format = muster::source_format::npy, .order = muster::dimension_order::hwc});
    return 0;
}
