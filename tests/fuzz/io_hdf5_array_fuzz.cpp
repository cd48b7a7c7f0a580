// links: muster::io
// iterations: 3000
// Any bytes as an HDF5 file with an array to convert; its links, types, shapes and storage. See io_dataset_fuzz.cpp on HDF5 itself.
#include "source_fuzz.hpp"

/// HDF5 asks for as much memory as a damaged file says, and goes on where it gets none.
extern "C" char const* __asan_default_options() {
    return "allocator_may_return_null=1";
}
/// And it does not give back all of it after an error in a damaged file.
extern "C" char const* __lsan_default_suppressions() {
    return "leak:libhdf5";
}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    muster::fuzz::read_source(
        {data, size}, {.format = muster::source_format::hdf5, .images = "/images", .order = muster::dimension_order::chw});
    return 0;
}
