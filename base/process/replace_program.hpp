// Replaces this process by another program.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Becomes the program of the file `path`, with `words` as its argv (the first is its own name) and `variables`; what stands in standard output's and
/// standard error's buffers is written first. Does not return. Throws errc::system if the program cannot be executed.
[[noreturn]] void replace_program(std::string const& path, std::vector<std::string> const& words, environment const& variables);

}  // namespace muster
