// Variables and words as a shell reads them back.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// "NAME='value'" lines in order of name, quoted where needed.
std::string shell_lines(environment const& variables);

/// The words as one command line, quoted where needed.
std::string shell_line(std::vector<std::string> const& words);

}  // namespace muster
