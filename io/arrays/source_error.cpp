#include "io/arrays/source_error.hpp"

#include <fmt/format.h>

#include <array>

namespace muster {

namespace {

std::string render(std::string_view file, bool compressed, source_error::fault const& fault) {
    return fmt::format("{}{}: offset {}: {}: found {}, expected {}; {}", file, compressed ? " (gzip)" : "", fault.offset,
                       fault.field, fault.found, fault.expected, fault.advice);
}

}  // namespace

source_error::source_error(std::string_view file, bool compressed, fault what)
    : error(errc::invalid_data, render(file, compressed, what)), file_(file), fault_(std::move(what)) {}

std::string_view known_format(std::string_view head) {
    struct beginning {
        std::string_view bytes;
        std::string_view name;
    };
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
        beginning{"<", "markup, perhaps the error page of a failed download: download it again"},
    };
    for (beginning const& known : beginnings)
        if (head.starts_with(known.bytes)) return known.name;
    return "";
}

}  // namespace muster
