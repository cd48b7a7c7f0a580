// The IDX format of the MNIST family: reads a header of big-endian numbers, then the elements.
//
//   offset 0  two zero bytes
//   offset 2  type: 0x08 unsigned byte, 0x09 signed byte, 0x0b int16, 0x0c int32, 0x0d float32, 0x0e float64
//   offset 3  number of dimensions
//   offset 4  the dimensions, 4 bytes each, most significant byte first
//   then      the elements, the last dimension fastest, and nothing after them
// Source: the page of the MNIST database by LeCun, Cortes and Burges, "The IDX file format".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "io/convert/byte_source.hpp"
#include "io/dataset/image_shape.hpp"

namespace muster {

/// A file that is not the IDX file it should be (errc::invalid_data). `what()` is
/// "FILE[ (gzip)]: offset N: FIELD: found X, expected Y; ADVICE", offsets in the uncompressed stream.
class idx_error : public error {
  public:
    struct fault {
        std::uint64_t offset = 0;
        std::string field;  ///< "magic", "type", "rank", "dimension 0", "size", "data", "trailing bytes", "label", "label count"
        std::string found;
        std::string expected;
        std::string advice;
    };
    idx_error(std::string_view file, bool compressed, fault what);
    std::string const& file() const noexcept { return file_; }
    std::uint64_t offset() const noexcept { return fault_.offset; }
    std::string const& field() const noexcept { return fault_.field; }
    std::string const& found() const noexcept { return fault_.found; }
    std::string const& expected() const noexcept { return fault_.expected; }

  private:
    std::string file_;
    fault fault_;
};

/// What an IDX file is taken for.
enum class idx_kind { images, labels };

/// Reads the unsigned bytes of an IDX file item by item (an item is an image, or a label), in constant memory. Opening checks
/// every field of the header and that the file can hold what the header promises. Not thread safe. Throws idx_error and the
/// errors of byte_source.
class idx_reader {
  public:
    /// Images have 3 dimensions (N, height, width) or 4 (N, channels, height, width), labels 1; at least one item.
    idx_reader(std::string path, idx_kind kind);

    std::string const& path() const noexcept { return source_.path(); }
    bool compressed() const noexcept { return source_.compressed(); }
    std::size_t items() const noexcept { return items_; }
    image_shape shape() const noexcept { return shape_; }  ///< 1 x 1 x 1 for labels
    std::size_t item_bytes() const noexcept { return shape_.bytes(); }
    std::size_t position() const noexcept { return position_; }  ///< of the next item
    std::uint64_t offset_of(std::size_t item) const noexcept { return header_bytes_ + item * item_bytes(); }

    /// Goes on to `item`, which must not lie behind. A compressed file is inflated up to there.
    void skip_to(std::size_t item);

    /// The next out.size() / item_bytes() items. Throws idx_error where the data end too early.
    void read(std::span<std::uint8_t> out);

    /// After the last item: throws idx_error if anything follows.
    void finish();

    /// An error of this file.
    [[noreturn]] void fail(idx_error::fault fault) const;

  private:
    void read_header(idx_kind kind);
    void check_size();
    [[noreturn]] void wrong_rank(idx_kind kind, unsigned rank) const;
    void missing(std::uint64_t end) const;

    byte_source source_;
    std::vector<std::uint64_t> dimensions_;
    std::uint64_t header_bytes_ = 0;
    std::size_t items_ = 0;
    image_shape shape_;
    std::size_t position_ = 0;
};

/// Throws idx_error unless both have the same number of items.
void require_pair(idx_reader const& images, idx_reader const& labels);

}  // namespace muster
