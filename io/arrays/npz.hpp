// NumPy's archives .npz, zip files of .npy: lists their entries.
#pragma once

#include <string>
#include <vector>

#include "io/arrays/byte_source.hpp"

namespace muster {

/// The arrays of an archive, named without ".npy", stored or deflated. Throws errc::invalid_data, naming file and entry: no zip
/// archive, a damaged one, an entry that is encrypted or compressed otherwise.
std::vector<file_region> npz_entries(std::string const& path);

}  // namespace muster
