// links: muster::io
// Any bytes as a gzip file: its stream read in pieces and skipped, or an error that names the file; offsets that agree.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "io/arrays/byte_source.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    static muster::unique_fd const file(::memfd_create("fuzz.gz", MFD_CLOEXEC));
    static constexpr std::array<std::uint8_t, 3> magic{0x1f, 0x8b, 8};
    if (::ftruncate(file.get(), 0) != 0 || ::pwrite(file.get(), magic.data(), magic.size(), 0) != 3 ||
        ::pwrite(file.get(), data, size, 3) != static_cast<ssize_t>(size))
        return 0;
    std::string const path = "/proc/self/fd/" + std::to_string(file.get());
    try {
        muster::byte_source source(path);
        std::array<std::uint8_t, 4096> piece;
        std::uint64_t total = 0;
        for (std::size_t round = 0; total < (std::uint64_t{4} << 20); ++round) {
            auto const got = round % 3 == 2 ? source.skip(1000) : source.read(piece);
            total += got;
            if (source.offset() != total || total > source.size_limit()) std::abort();
            if (got < (round % 3 == 2 ? 1000 : piece.size())) break;
        }
    } catch (muster::error const& e) {
        if (std::string(e.what()).find("/proc/self/fd") == std::string::npos) std::abort();
    }
    return 0;
}
