#include "io/dataset/sample_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "base/throw_error.hpp"
#include "io/dataset/file_bytes.hpp"

namespace muster {

sample_file::sample_file(dataset const& from)
    : path_(from.info().path),
      file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)),
      samples_(from.size()),
      sample_bytes_(from.image_bytes()),
      chunk_samples_(from.info().image_offset ? from.size() : from.info().chunk_samples) {
    expect(from.info().read_by_chunks, "samples that are read by chunks");
    if (!file_) throw_system("open", path_);
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0) throw_system("fstat", path_);
    if (auto const offset = from.info().image_offset)
        chunks_ = {{*offset, std::uint64_t{samples_} * sample_bytes_, false}};
    else
        chunks_ = from.stored_chunks();
    for (hdf5::stored_chunk const& chunk : chunks_)
        if (chunk.offset + chunk.bytes > static_cast<std::uint64_t>(status.st_size))
            throw_error(errc::invalid_data, "{}: ends at {}, expected samples up to {}; the file is truncated: copy it again",
                        path_, status.st_size, chunk.offset + chunk.bytes);
    ::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_RANDOM);  // whole chunks are asked for; what follows them is not wanted
}

void sample_file::read(hyperslab rows, std::uint8_t* into) const {
    while (!rows.empty()) {
        std::uint64_t const chunk = rows.first / chunk_samples_;
        std::size_t const skipped = rows.first % chunk_samples_;
        std::size_t const count = std::min(rows.count, chunk_samples_ - skipped);
        if (chunk_of(rows.first).encoded)
            read_deflated(chunk, {skipped, count}, into);
        else
            read_plain(chunk_of(rows.first), skipped * sample_bytes_, count * sample_bytes_, into);
        rows = {rows.first + count, rows.count - count};
        into += count * sample_bytes_;
    }
}

void sample_file::read_plain(hdf5::stored_chunk const& from, std::uint64_t skipped_bytes, std::size_t bytes,
                             std::uint8_t* into) const {
    read_exactly(file_.get(), path_, from.offset + skipped_bytes, {into, bytes});
}

/// HDF5 pads the last chunk to the size of the others before it deflates it.
void sample_file::read_deflated(std::uint64_t chunk, hyperslab within, std::uint8_t* into) const {
    hdf5::stored_chunk const& from = chunks_[chunk];
    thread_local std::vector<std::uint8_t> encoded, decoded;
    encoded.resize(from.bytes);
    read_exactly(file_.get(), path_, from.offset, encoded);
    std::size_t const whole = chunk_samples_ * sample_bytes_;
    bool const direct = within.count == chunk_samples_;
    if (!direct) decoded.resize(whole);
    auto size = static_cast<uLongf>(whole);
    int const code = ::uncompress(direct ? into : decoded.data(), &size, encoded.data(), static_cast<uLong>(encoded.size()));
    if (code != Z_OK || size != whole)
        throw_error(errc::invalid_data,
                    "{}: chunk {} (samples {} to {}, {} bytes at {}) does not inflate to {} bytes (zlib: {}); the file is "
                    "damaged: copy or convert it again",
                    path_, chunk, chunk * chunk_samples_, std::min(samples_, (chunk + 1) * chunk_samples_) - 1, from.bytes,
                    from.offset, whole, code);
    if (!direct) std::memcpy(into, decoded.data() + within.first * sample_bytes_, within.count * sample_bytes_);
}

void sample_file::will_need(hyperslab rows) const noexcept {
    while (!rows.empty()) {
        hdf5::stored_chunk const& from = chunk_of(rows.first);
        std::size_t const skipped = rows.first % chunk_samples_;
        std::size_t const count = std::min(rows.count, chunk_samples_ - skipped);
        std::uint64_t const at = from.offset + (from.encoded ? 0 : skipped * sample_bytes_);
        std::uint64_t const bytes = from.encoded ? from.bytes : count * sample_bytes_;
        ::posix_fadvise(file_.get(), static_cast<off_t>(at), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
        rows = {rows.first + count, rows.count - count};
    }
}

std::size_t sample_file::place_in_page(std::uint64_t row, std::size_t page_bytes) const noexcept {
    hdf5::stored_chunk const& from = chunk_of(row);
    return from.encoded ? 0 : (from.offset + row % chunk_samples_ * sample_bytes_) % page_bytes;
}

}  // namespace muster
