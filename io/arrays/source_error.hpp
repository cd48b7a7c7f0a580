// An error in a file to convert: names the file, the place, what was found there and what was expected.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace muster {

/// A file that is not what it should be (errc::invalid_data). `what()` is
/// "FILE[ (gzip)]: offset N: FIELD: found X, expected Y; ADVICE", offsets in the uncompressed stream.
class source_error : public error {
  public:
    struct fault {
        std::uint64_t offset = 0;
        std::string field;  ///< "magic", "type", "rank", "dimension 0", "size", "data", "trailing bytes", "label", "label count"
        std::string found;
        std::string expected;
        std::string advice;
    };
    source_error(std::string_view file, bool compressed, fault what);
    std::string const& file() const noexcept { return file_; }
    std::uint64_t offset() const noexcept { return fault_.offset; }
    std::string const& field() const noexcept { return fault_.field; }
    std::string const& found() const noexcept { return fault_.found; }
    std::string const& expected() const noexcept { return fault_.expected; }

  private:
    std::string file_;
    fault fault_;
};

/// "an HDF5 file", "a zip archive", …: the known format that a file begins like, and what to do with it; else empty.
std::string_view known_format(std::string_view head);

}  // namespace muster
