// Makes paths absolute.
#pragma once

#include <string>

namespace muster {

/// `wanted` from this process' working directory, without dots. Throws errc::not_found.
std::string absolute_path(std::string const& wanted);

}  // namespace muster
