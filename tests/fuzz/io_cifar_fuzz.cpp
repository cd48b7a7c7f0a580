// links: muster::io
// iterations: 5000
// Any bytes as records of CIFAR-10 and of CIFAR-100.
#include "source_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    for (auto const format : {muster::source_format::cifar10, muster::source_format::cifar100})
        muster::fuzz::read_source({data, size}, {.format = format});
    return 0;
}
