// links: muster::io
// iterations: 10000
// Any bytes as a CSV file, with a header of its own and with one given.
#include "source_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    for (char const* column : {"", "1"})
        muster::fuzz::read_source({data, size}, {.format = muster::source_format::csv, .label_column = column});
    return 0;
}
