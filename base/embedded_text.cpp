#include "base/embedded_text.hpp"

#include <string>

#include "base/error.hpp"

namespace muster {

std::string_view find_text(std::span<embedded_text const> files, std::string_view name) {
    for (auto const& file : files)
        if (file.name == name) return file.text;
    throw error(errc::internal, "the file '" + std::string(name) + "' is not part of this program; please report it");
}

}  // namespace muster
