// links: muster::io
// iterations: 3000
// Any bytes as an HDF5 file with an array to convert; its links, types, shapes and storage. See io_dataset_fuzz.cpp on HDF5 itself.
#include "source_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    muster::fuzz::read_source(
        {data, size}, {.format = muster::source_format::hdf5, .images = "/images", .order = muster::dimension_order::chw});
    return 0;
}
