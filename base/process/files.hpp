// Reads and writes whole files; a missing file is not an error.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Says what to do where a write fails with EFBIG.
inline constexpr std::string_view too_large_hint = "raise the limit of file sizes (ulimit -f)";

// Writes a whole text or block to a file, however many calls that takes.

/// Writes all of `bytes` to the descriptor, which must not be non-blocking. Throws errc::system naming `path`, with `hint` last, if the
/// file system does not take them.
void write_all(int file, std::string_view bytes, std::string_view path,
               std::string_view hint = "free space there, or give another folder");

// Reads a whole file; a missing file gives an empty string. For files of /proc, and files that programs leave.

/// Returns what the file holds; empty where it cannot be read, is no regular file (a pipe, /dev/zero) or has more than `most_bytes`. Files that a user names go
/// through read_small_file (base/trust) instead, which tells faults.
std::string read_text_file(std::string const& path, std::size_t most_bytes = std::size_t{64} << 20);

// Looks for files and lists folders. What cannot be looked at counts as not there.

/// Returns whether something of that name, of any kind, is there.
bool path_exists(std::filesystem::path const& path) noexcept;
bool is_folder(std::filesystem::path const& path) noexcept;
bool is_plain_file(std::filesystem::path const& path) noexcept;

/// Returns the paths of what lies in the folder, in no order; none where it cannot be read.
std::vector<std::filesystem::path> folder_entries(std::filesystem::path const& folder);

// Makes paths absolute.

/// `wanted` from this process' working directory, without dots. Throws errc::not_found.
std::string absolute_path(std::string const& wanted);

}  // namespace muster
