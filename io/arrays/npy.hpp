// NumPy's array format .npy, versions 1 to 3: reads its header.
//
//   offset 0  "\x93NUMPY", major version, minor version
//   offset 8  length of the header, 2 bytes (version 1) or 4, least significant byte first
//   then      the header, a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
//   then      the elements, the last dimension fastest, and nothing after them
// Source: numpy.lib.format in NumPy's documentation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/arrays/byte_source.hpp"
#include "io/arrays/item_array.hpp"

namespace muster {

// NumPy's archives .npz, zip files of .npy: lists their entries.

/// The arrays of an archive, named without ".npy", stored or deflated. Throws errc::invalid_data, naming file and entry: no zip
/// archive, a damaged one, an entry that is encrypted or compressed otherwise.
std::vector<file_region> npz_entries(std::string const& path);

/// The header of an array; `from` stands at its beginning, and behind the header afterwards. Throws source_error: not NumPy's,
/// damaged, elements that are no numbers of ours, columns first (Fortran order), an unknown version.
array_form read_npy_header(byte_source& from);

/// An array of a stream, header included.
std::unique_ptr<item_array> open_npy(byte_source from);

}  // namespace muster
