// links: muster::io
// Any bytes as an IDX file, of images and of labels: read to the end, or an error that says something; never more memory than a
// piece.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "io/arrays/item_array.hpp"

namespace {

void read_all(std::string const& path, muster::idx_kind kind) {
    try {
        muster::idx_reader reader(path, kind);
        if (reader.items() > 2) reader.skip_to(reader.items() / 3);
        std::size_t const most = std::max<std::size_t>(1, 65536 / reader.item_bytes());
        std::vector<std::uint8_t> piece;
        while (reader.position() < reader.items()) {
            std::size_t const items = std::min(most, reader.items() - reader.position());
            // gzip could hold it, so only reading tells; a whole image of a giant is not worth the time.
            if (items * reader.item_bytes() > (std::size_t{1} << 22)) return;
            piece.resize(items * reader.item_bytes());
            reader.read(piece);
        }
        reader.finish();
    } catch (muster::error const& e) {
        if (e.code() != muster::errc::invalid_data || std::string(e.what()).size() < 20) std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    static muster::unique_fd const file(::memfd_create("fuzz.idx", MFD_CLOEXEC));
    if (::ftruncate(file.get(), 0) != 0 || ::pwrite(file.get(), data, size, 0) != static_cast<ssize_t>(size)) return 0;
    std::string const path = "/proc/self/fd/" + std::to_string(file.get());
    read_all(path, muster::idx_kind::images);
    read_all(path, muster::idx_kind::labels);
    return 0;
}
