// Files of the kernel: small reads that throw nothing; what cannot be read is empty.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpuset.hpp"

namespace muster::sysfs_files {

/// The first 4 KiB of a file, trimmed.
std::string read_text(std::string const& path);
/// A number from -1 to 2^20, or `otherwise`.
int read_number(std::string const& path, int otherwise);
/// "0x10de"; 0 if it is not a number.
std::uint32_t read_hex(std::string const& path);
cpuset read_cpus(std::string const& path);
/// "0-3,8"; empty if it is not a list.
cpuset list_in(std::string_view text);
/// The name that a link points to, such as a device's driver.
std::string link_name(std::string const& path);
/// Names in a folder, sorted.
std::vector<std::string> names_in(std::string const& folder);
/// The value in the line "KEY: VALUE" or "KEY VALUE" of a text.
std::string value_of(std::string_view text, std::string_view key);
/// The steps from the root complex to a device: the end of its real path, "…/pci0000:00/0000:00:01.1/0000:07:00.0".
std::vector<std::string> path_steps(std::string const& link);

}  // namespace muster::sysfs_files
