#include "launch/system/absolute_path.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.hpp"

namespace muster {

std::string absolute_path(std::string const& wanted) {
    std::error_code fault;
    auto const path = std::filesystem::absolute(wanted, fault);
    if (fault) throw error(errc::not_found, fmt::format("{}: {}; change to a folder that exists", wanted, fault.message()));
    auto const normal = path.lexically_normal();
    return normal.has_filename() || !normal.has_relative_path() ? normal : normal.parent_path();
}

}  // namespace muster
