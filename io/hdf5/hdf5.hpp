// HDF5's C interface: wraps handles, errors and each call that muster needs.
//
// No HDF5 type appears here: a handle is the 64-bit number that HDF5 (since 1.10) calls hid_t. HDF5 has one global lock or none
// at all: use it from one thread of a process at a time. The library's automatic printing is off during these calls and as it was
// afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/unique_handle.hpp"
#include "io/hdf5/element_type.hpp"
#include "io/hdf5/hyperslab.hpp"

namespace muster {

/// A failed HDF5 call. `what()` names the call, the file, the object inside it, HDF5's messages from the innermost cause
/// outwards, and a hint where the cause is a known one (locks, a truncated file, not HDF5 at all).
class hdf5_error : public library_error {
  public:
    hdf5_error(std::string_view call, std::string file, std::string object, std::vector<std::string> stack, int native_code);
    std::string const& file() const noexcept { return file_; }
    std::string const& object() const noexcept { return object_; }  ///< "/train/images"; empty if it is the file itself
    std::vector<std::string> const& stack() const noexcept { return stack_; }  ///< HDF5's error stack, innermost first

  private:
    std::string file_;
    std::string object_;
    std::vector<std::string> stack_;
};

namespace hdf5 {

using id = std::int64_t;

enum class kind { file, group, dataset, dataspace, property_list, attribute, datatype };
template <kind Kind>
struct traits {
    using type = id;
    static type null() noexcept { return -1; }
    static void close(type handle) noexcept;
};
using file = unique_handle<traits<kind::file>>;
using group = unique_handle<traits<kind::group>>;
using dataset = unique_handle<traits<kind::dataset>>;
using dataspace = unique_handle<traits<kind::dataspace>>;
using property_list = unique_handle<traits<kind::property_list>>;
using attribute = unique_handle<traits<kind::attribute>>;
using datatype = unique_handle<traits<kind::datatype>>;

/// The file and object that a call works on, for its error.
struct place {
    std::string file;
    std::string object;
};

/// An MPI communicator as HDF5 takes it, behind a pointer so that this header names no MPI type; null: no MPI.
using mpi_handle = void const*;

// Property lists.
// --------------------------------------------------------------------------------------------------------------------

/// File access: serial (the sec2 driver), or parallel over MPI-IO with collective metadata. Objects of 64 KiB or more begin at a
/// multiple of `alignment_bytes`.
property_list file_access(place const& where, std::size_t alignment_bytes, mpi_handle communicator);

/// Transfer: independent, or collective if the file is open in parallel.
property_list transfer(place const& where, bool collective);

/// Throws hdf5_error unless the last transfer with `list` was collective on all the chunks it touched or had nothing to do; the
/// message says why HDF5 fell back.
void require_collective(place const& where, property_list const& list);

// Files and groups.
// ------------------------------------------------------------------------------------------------------------------

file create_file(place const& where, property_list const& access);  ///< fails if the file exists
file open_file(place const& where, property_list const& access, bool writable = false);
void close(place const& where, file&& handle);  ///< throws what a destructor would drop: here a write may fail
group create_group(place const& where, file const& parent, std::string const& name);
group open_group(place const& where, file const& parent, std::string const& name);
/// For a program, before its first call of the library and of MPI: that then closes nothing at exit or in MPI_Finalize. What has to be closed is closed
/// before; after a write that failed the library's own end reads freed memory (1.10).
void keep_out_of_exit() noexcept;

/// The groups at the root, in order of name. Throws errc::invalid_data where there are more entries than a dataset has.
std::vector<std::string> group_names(place const& where, file const& parent);
bool has_group(place const& where, file const& parent, std::string const& name);  ///< at the root

// Datasets.
// --------------------------------------------------------------------------------------------------------------------------

/// `chunk` empty: contiguous; else chunked, uncompressed where `gzip_level` is 0. Uncompressed, its space is allocated at once and
/// not filled. Elements lie with their least significant byte first.
dataset create_dataset(place const& where, group const& parent, std::string const& name, element_type type,
                       std::span<std::uint64_t const> extent, std::span<std::uint64_t const> chunk, unsigned gzip_level = 0);
/// This and open_group throw errc::not_found if it does not exist, and errc::invalid_data where `name` is a soft or external link.
dataset open_dataset(place const& where, group const& parent, std::string const& name);
/// The dataset `where.object`, a path from the root, by no link that could lead out of the file.
dataset open_dataset_at(place const& where, file const& parent);
bool has_dataset(place const& where, file const& parent);
void close(place const& where, dataset&& handle);

struct dataset_form {
    std::vector<std::uint64_t> extent;
    std::vector<std::uint64_t> chunk;     ///< empty if contiguous
    std::optional<std::uint64_t> offset;  ///< of the first byte in the file, if contiguous and allocated
    std::uint64_t stored_bytes = 0;
    bool filtered = false;    ///< compressed or otherwise encoded
    bool deflated = false;    ///< by deflate, and by nothing else
    bool external = false;    ///< its elements lie in other files
    bool is_virtual = false;  ///< it is put together from other datasets, of this file or of others
    bool big_endian = false;
    std::string missing_filter;  ///< "lzf (32000)": one that is needed to read it and is not here; empty: none is
};
dataset_form form_of(place const& where, dataset const& handle);
/// Returns why the elements are not read: they lie elsewhere than in this dataset, and whoever made it says where, so the reader's own
/// files might be among that; or they are compressed by what this HDF5 does not know. Empty if they are read.
std::string why_not_read(dataset_form const& form);

/// The type of the elements, in either byte order, of an enumeration that of its values; nothing if it is none of ours.
std::optional<element_type> element_of(place const& where, dataset const& handle);

/// Values and names of the elements' enumeration, in order of value; empty for other types.
std::vector<std::pair<std::int64_t, std::string>> enumeration_of(place const& where, dataset const& handle);

/// Holds what attributes say of a dataset's numbers, by the conventions of NetCDF and HDF5's specification of images.
struct number_meaning {
    std::string
        changed_by;    ///< those by which the values are others than the stored numbers: "scale_factor 0.01, add_offset 273.15"
    std::string told;  ///< those that say more of the values: "_FillValue -32767, units \"K\""
};
number_meaning meaning_of(place const& where, dataset const& handle);

/// The arrays of a file, the first few of them: "/a [200, 28, 28] of uint8; /b/c [200] of int64; and 3 more". No link out of it is followed.
std::string arrays_in(place const& where, file const& parent);

/// A chunk as it lies in the file.
struct stored_chunk {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    bool encoded = false;  ///< by the dataset's filters; HDF5 stores a chunk that they cannot make smaller as it is
    bool operator==(stored_chunk const&) const = default;
};

/// The chunks, in order of their first row; empty if contiguous. Chunks are whole in all dimensions but the first, and have their
/// space.
std::vector<stored_chunk> stored_chunks(place const& where, dataset const& handle);

/// Writes the chunk that begins at row `first_row` as it is to lie in the file, encoded by the dataset's filters.
void write_chunk(place const& where, dataset const& handle, std::uint64_t first_row, std::span<std::uint8_t const> encoded);

/// Rows `rows` of the first dimension, whole in the others, as bytes or numbers. `data` must have their exact size. Collective if
/// `list` is: a rank with no rows takes part with an empty selection.
void read(place const& where, dataset const& handle, hyperslab rows, element_type type, void* data, property_list const& list);
void write(place const& where, dataset const& handle, hyperslab rows, element_type type, void const* data,
           property_list const& list);

// Attributes of a file's root or of a group.
// -------------------------------------------------------------------------------------------

void write_attribute(place const& where, id object, std::string const& name, std::uint64_t value);
void write_attribute(place const& where, id object, std::string const& name, double value);
void write_attribute(place const& where, id object, std::string const& name,
                     std::string const& value);  ///< UTF-8, of fixed length
void write_attribute(place const& where, id object, std::string const& name, std::vector<std::string> const& values);

/// Nothing if there is no such attribute. Throws errc::invalid_data if it is of another kind. Strings may be of fixed or variable
/// length.
std::optional<std::uint64_t> read_number(place const& where, id object, std::string const& name);
std::optional<double> read_real(place const& where, id object, std::string const& name);
std::optional<std::vector<std::string>> read_strings(place const& where, id object, std::string const& name);

}  // namespace hdf5
}  // namespace muster
