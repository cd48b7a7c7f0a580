// An array of items in a file, whatever the file's format: says what it holds and reads it item by item.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/arrays/byte_source.hpp"
#include "io/arrays/source_error.hpp"
#include "io/hdf5/element_type.hpp"
#include "io/hdf5/hdf5.hpp"
#include "io/hdf5/hyperslab.hpp"

namespace muster {

/// Dimensions and type; an item is one step of the first dimension.
struct array_form {
    std::vector<std::uint64_t> dimensions;
    element_type type = element_type::u8;
    bool big_endian = false;
    bool operator==(array_form const&) const = default;
};

/// It is not thread safe. Opening one has checked that the file can hold what its header promises.
class item_array {
  public:
    virtual ~item_array() = default;

    virtual std::string name() const = 0;  ///< for messages
    virtual std::vector<std::string> files() const = 0;
    array_form const& form() const noexcept { return form_; }
    std::size_t items() const noexcept { return static_cast<std::size_t>(form_.dimensions.at(0)); }
    std::size_t item_bytes() const noexcept { return item_bytes_; }

    /// Reads whole items, which must not lie before those read so far, in memory's byte order.
    virtual void read(hyperslab rows, std::span<std::uint8_t> out) = 0;
    /// Checks what follows the last item: throws if something is wrong with it.
    virtual void finish() {}
    /// The offset of an item in the file's (uncompressed) stream, for messages.
    virtual std::uint64_t offset_of(std::size_t) const noexcept { return 0; }
    virtual bool compressed() const noexcept { return false; }
    /// Returns what its elements' values are called, in order of value; empty where they have no names.
    virtual std::vector<std::pair<std::int64_t, std::string>> names() const { return {}; }
    /// Returns what people should know of it, or empty.
    virtual std::string note() const { return {}; }
    [[noreturn]] void fail(source_error::fault fault) const;

  protected:
    item_array() = default;
    explicit item_array(array_form form) { set_form(std::move(form)); }
    void set_form(array_form form);  ///< sets item_bytes_, saturated where it overflows

  private:
    array_form form_;
    std::size_t item_bytes_ = 0;
};

/// An array whose elements follow a header in a stream of bytes: IDX, NumPy.
class stream_array : public item_array {
  public:
    /// `source` stands behind the header, whose length is source.offset(). Throws source_error unless the stream's length is
    /// that of header and elements, or could be.
    stream_array(byte_source source, array_form form);

    std::string name() const override { return source_.name(); }
    std::vector<std::string> files() const override { return {source_.path()}; }
    void read(hyperslab rows, std::span<std::uint8_t> out) override;
    void finish() override;
    std::uint64_t offset_of(std::size_t item) const noexcept override { return header_bytes_ + item * item_bytes(); }

    std::string const& path() const noexcept { return source_.path(); }
    bool compressed() const noexcept override { return source_.compressed(); }
    std::size_t position() const noexcept { return position_; }  ///< of the next item

    /// Goes on to `item`, which must not lie behind. A compressed file is inflated up to there.
    void skip_to(std::size_t item);
    /// The next out.size() / item_bytes() items. Throws source_error where the data end too early.
    void read(std::span<std::uint8_t> out);

  protected:
    /// Serves a class that reads its header itself and calls check() afterwards.
    explicit stream_array(byte_source source) : source_(std::move(source)) {}
    void check(array_form form);
    byte_source& source() noexcept { return source_; }

  private:
    void check_size();
    [[noreturn]] void missing(std::uint64_t end) const;

    byte_source source_;
    std::uint64_t header_bytes_ = 0;
    std::size_t position_ = 0;
};

// NumPy's array format .npy, versions 1 to 3: reads its header.
//
//   offset 0  "\x93NUMPY", major version, minor version
//   offset 8  length of the header, 2 bytes (version 1) or 4, least significant byte first
//   then      the header, a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
//   then      the elements, the last dimension fastest, and nothing after them
// Source: numpy.lib.format in NumPy's documentation.

// NumPy's archives .npz, zip files of .npy: lists their entries.

/// The arrays of an archive, named without ".npy", stored or deflated. Throws errc::invalid_data, naming file and entry: no zip
/// archive, a damaged one, an entry that is encrypted or compressed otherwise.
std::vector<file_region> npz_entries(std::string const& path);

/// The header of an array; `from` stands at its beginning, and behind the header afterwards. Throws source_error: not NumPy's,
/// damaged, elements that are no numbers of ours, columns first (Fortran order), an unknown version.
array_form read_npy_header(byte_source& from);

/// An array of a stream, header included.
std::unique_ptr<item_array> open_npy(byte_source from);

// The IDX format of the MNIST family: reads a header of big-endian numbers, then the elements.
//
//   offset 0  two zero bytes
//   offset 2  type: 0x08 unsigned byte, 0x09 signed byte, 0x0b int16, 0x0c int32, 0x0d float32, 0x0e float64
//   offset 3  number of dimensions
//   offset 4  the dimensions, 4 bytes each, most significant byte first
//   then      the elements, the last dimension fastest, and nothing after them
// Source: the page of the MNIST database by LeCun, Cortes and Burges, "The IDX file format".

/// Says what an IDX file is taken for.
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

// An array inside any HDF5 file: reads it as a source's items.

/// Opened by this process alone. Throws hdf5_error; errc::not_found where there is no such array; errc::invalid_data where its
/// elements are no numbers of ours, lie in another file, are fewer than its shape promises, or stand for other values by its attributes.
class hdf5_array : public item_array {
  public:
    hdf5_array(std::string const& path, std::string const& object);
    std::string name() const override { return where_.file + ": " + where_.object; }
    std::vector<std::string> files() const override { return {where_.file}; }
    void read(hyperslab rows, std::span<std::uint8_t> out) override;
    std::vector<std::pair<std::int64_t, std::string>> names() const override { return hdf5::enumeration_of(where_, handle_); }
    std::string note() const override;

  private:
    hdf5::place where_;
    hdf5::file file_;
    hdf5::dataset handle_;
    std::string told_;  ///< by attributes
};

/// Returns whether an HDF5 file has this array.
bool has_hdf5_array(std::string const& path, std::string const& object);

/// The arrays that an HDF5 file has, with shapes and types, for messages.
std::string hdf5_arrays(std::string const& path);

}  // namespace muster
