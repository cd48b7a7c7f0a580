// The IDX format of the MNIST family: reads a header of big-endian numbers, then the elements.
//
//   offset 0  two zero bytes
//   offset 2  type: 0x08 unsigned byte, 0x09 signed byte, 0x0b int16, 0x0c int32, 0x0d float32, 0x0e float64
//   offset 3  number of dimensions
//   offset 4  the dimensions, 4 bytes each, most significant byte first
//   then      the elements, the last dimension fastest, and nothing after them
// Source: the page of the MNIST database by LeCun, Cortes and Burges, "The IDX file format".
#pragma once

#include <string>

#include "io/arrays/item_array.hpp"

namespace muster {

/// What an IDX file is taken for.
enum class idx_kind { images, labels };

/// An IDX file, plain or gzip: an item is an image, or a label. Opening checks every field of the header and that the file can
/// hold what the header promises. Throws source_error and the errors of byte_source.
class idx_reader : public stream_array {
  public:
    /// Images have 2 dimensions or more (N, …), labels 1; at least one item.
    idx_reader(std::string path, idx_kind kind);

  private:
    array_form read_header(idx_kind kind);
    [[noreturn]] void wrong_rank(idx_kind kind, unsigned rank) const;
};

}  // namespace muster
