// Files that are part of a program: rows of name and text, made by the CMake function muster_embed_text.
#pragma once

#include <span>
#include <string_view>

namespace muster {

struct embedded_text {
    std::string_view name;  ///< the file's name without its folder
    std::string_view text;
};

/// The text of the file called `name`; it must be among `files` (else errc::internal).
std::string_view find_text(std::span<embedded_text const> files, std::string_view name);

}  // namespace muster
