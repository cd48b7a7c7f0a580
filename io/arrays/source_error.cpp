#include "io/arrays/source_error.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>

namespace muster {

namespace {

std::string render(std::string_view file, bool compressed, source_error::fault const& fault) {
    return fmt::format("{}{}: offset {}: {}: found {}, expected {}; {}", file, compressed ? " (gzip)" : "", fault.offset,
                       fault.field, fault.found, fault.expected, fault.advice);
}

/// CRC-32C, bit by bit: of a few bytes. Source: RFC 3720, appendix B.4.
std::uint32_t crc32c(std::string_view bytes) noexcept {
    std::uint32_t crc = ~0u;
    for (char const byte : bytes) {
        crc ^= static_cast<std::uint8_t>(byte);
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1u ? 0x82f63b78u : 0u);
    }
    return ~crc;
}

/// A record's length, 8 bytes, and its masked checksum, 4 bytes. Source: the tutorial "TFRecord and tf.train.Example" of TensorFlow.
bool begins_tfrecord(std::string_view head) noexcept {
    if (head.size() < 12) return false;
    std::uint32_t stored = 0;
    for (std::size_t i = 0; i < 4; ++i) stored |= std::uint32_t{static_cast<std::uint8_t>(head[8 + i])} << 8 * i;
    std::uint32_t const crc = crc32c(head.substr(0, 8));
    return stored == (crc >> 15 | crc << 17) + 0xa282ead8u;
}

}  // namespace

source_error::source_error(std::string_view file, bool compressed, fault what)
    : error(errc::invalid_data, render(file, compressed, what)), file_(file), fault_(std::move(what)) {}

std::string_view known_format(std::string_view head) {
    struct beginning {
        std::string_view bytes;
        std::string_view name;
    };
    static constexpr std::string_view classic_netcdf =
        "NetCDF of the classic format, which is not read: write NetCDF-4 (HDF5), as `nccopy -k nc4 IN OUT` does";
    static constexpr std::array beginnings{
        beginning{"\x1f\x8b", "gzip data inside gzip data: unpack it once"},
        beginning{"\x89HDF", "an HDF5 file: give it with --from hdf5"},
        beginning{"PK\x03\x04", "a zip archive: unpack it, or give it with --from npz"},
        beginning{"BZh", "bzip2 data: unpack it with bunzip2"},
        beginning{"\xfd"
                  "7zX",
                  "xz data: unpack it with unxz"},
        beginning{"\x28\xb5\x2f\xfd", "zstd data: unpack it with unzstd"},
        beginning{"\x89PNG", "a PNG picture: give the folder with --from images"},
        beginning{"\xff\xd8\xff", "a JPEG picture: give the folder with --from images"},
        beginning{"\x93NUM", "a NumPy array: give it with --from npy"},
        beginning{"\x80\x02",
                  "a Python pickle, as CIFAR's Python version: take the binary version, or save arrays with numpy.savez"},
        beginning{"\x80\x03", "a Python pickle: save arrays with numpy.savez"},
        beginning{"\x80\x04", "a Python pickle: save arrays with numpy.savez"},
        beginning{"PAR1\x15", "Parquet, which is not read: write CSV, as pandas.read_parquet(IN).to_csv(OUT, index=False) does"},
        beginning{std::string_view("ARROW1\0\0", 8),
                  "Arrow (Feather), which is not read: write CSV, as pandas.read_feather(IN).to_csv(OUT, index=False) does"},
        beginning{"Obj\x01", "Avro, which is not read: write its records as CSV or .npy"},
        beginning{"CDF\x01", classic_netcdf},
        beginning{"CDF\x02", classic_netcdf},
        beginning{"CDF\x05", classic_netcdf},
        beginning{"MATLAB 5.0", "a MATLAB file of version 5, which is not read: save it with -v7.3 (HDF5), or by scipy as .npz"},
        beginning{"<", "markup, perhaps the error page of a failed download: download it again"},
    };
    for (beginning const& known : beginnings)
        if (head.starts_with(known.bytes)) return known.name;
    if (begins_tfrecord(head))
        return "TFRecord, which is not read: write the decoded records as .npy, as tensorflow.data and numpy.save do";
    return "";
}

}  // namespace muster
