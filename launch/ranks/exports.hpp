// The variables that `-x` gives to the ranks.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Sets each `NAME=value` in `variables`; a bare `NAME` must be there already. Throws errc::usage naming the entry.
void apply_exports(environment& variables, std::vector<std::string> const& exports);

/// Sets each `NAME=value` again, after muster set its own: `-x` is the user's word, also against muster's.
void set_explicit(environment& variables, std::vector<std::string> const& exports);

}  // namespace muster
