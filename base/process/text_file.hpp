// Reads a whole file for those to whom one that is not there says nothing: files of /proc, and what programs leave.
#pragma once

#include <string>

namespace muster {

/// What the file holds; empty where it cannot be read. Files that a user names go through read_small_file (base/trust) instead,
/// which tells faults.
std::string read_text_file(std::string const& path);

}  // namespace muster
