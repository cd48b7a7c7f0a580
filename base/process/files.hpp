// Reads and writes whole files; a missing file is not an error.
#pragma once

#include <string>
#include <string_view>

namespace muster {

// Writes a whole text or block to a file, however many calls that takes.

/// Writes all of `bytes` to the descriptor, which must not be non-blocking. Throws errc::system naming `path`, with `hint` last, if the
/// file system does not take them.
void write_all(int file, std::string_view bytes, std::string_view path,
               std::string_view hint = "free space there, or give another folder");

// Reads a whole file; a missing file gives an empty string. For files of /proc, and files that programs leave.

/// What the file holds; empty where it cannot be read. Files that a user names go through read_small_file (base/trust) instead,
/// which tells faults.
std::string read_text_file(std::string const& path);

}  // namespace muster
