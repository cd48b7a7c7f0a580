// The variables that `-x` gives to the ranks.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Sets each `NAME=value` in `variables`; a bare `NAME` must be there already. Throws errc::usage naming the entry.
void apply_exports(environment& variables, std::vector<std::string> const& exports);

/// The launcher's variables as its ranks get them: `inherited` without what told of an outer launcher, and with the exports.
/// Throws as apply_exports.
environment variables_for_ranks(environment const& inherited, std::vector<std::string> const& exports);

/// Sets each `NAME=value` again, after muster set its own: `-x` also overrides what muster sets.
void set_explicit(environment& variables, std::vector<std::string> const& exports);

}  // namespace muster
