// links: muster::io
// iterations: 15000
// Any bytes as a dataset file: open, verify, or an error that says something. HDF5 parses the bytes first; a crash inside it
// (versions 1.10 have known ones for headers made to harm) is HDF5's, but none came of this target's inputs with 1.10.8.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "io/dataset/dataset.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    static muster::unique_fd const file(::memfd_create("fuzz.h5", MFD_CLOEXEC));
    if (::ftruncate(file.get(), 0) != 0 || ::pwrite(file.get(), data, size, 0) != static_cast<ssize_t>(size)) return 0;
    std::string const path = "/proc/self/fd/" + std::to_string(file.get());
    try {
        for (std::string const& split : muster::dataset::splits(path)) muster::dataset::open(path, split).verify();
    } catch (muster::error const& e) {
        bool const expected =
            e.code() == muster::errc::invalid_data || e.code() == muster::errc::library || e.code() == muster::errc::not_found;
        if (!expected || std::string(e.what()).size() < 20) std::abort();
    }
    return 0;
}
