// Writes a whole text or block to a file, however many calls that takes.
#pragma once

#include <string_view>

namespace muster {

/// Writes all of `bytes` to the descriptor, which must not be non-blocking. Throws errc::system naming `path`, with `hint` last, if the
/// file system does not take them.
void write_all(int file, std::string_view bytes, std::string_view path,
               std::string_view hint = "free space there, or give another folder");

}  // namespace muster
