// Whole files of a state folder: read them, and write them so that they are there whole or not at all.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// The contents of `name` in `folder`; nothing if it is not there. Links are not followed. Throws errc::system.
std::optional<std::string> read_whole_file(int folder, char const* name);

/// Writes `name` under another name and renames it. Throws errc::system.
void write_whole_file(int folder, std::string const& name, std::string_view bytes);

/// The names in a folder but "." and "..", in no order. Throws errc::system.
std::vector<std::string> names_in_folder(int folder);

/// Removes a file, or a folder with all that is in it; links are removed, not followed. No error if it does not exist. Throws
/// errc::system.
void remove_tree(int folder, std::string const& name);

}  // namespace muster
