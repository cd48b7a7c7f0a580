// links: muster::io
// iterations: 5000
// Any bytes as a NumPy archive: its zip directory, its entries, stored or deflated.
#include "source_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    muster::fuzz::read_source({data, size}, {.format = muster::source_format::npz, .order = muster::dimension_order::chw});
    return 0;
}
