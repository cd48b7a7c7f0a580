// Finds muster's folders in a user's home, and provides a home folder for a user without one.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/environment.hpp"

namespace muster {

/// Sets HOME to / in `variables` and for this process if it is not set and the user has no entry in passwd, e.g. in containers
/// that run under any number: the PMIx library, which asks both, would use a null pointer. Returns true if it has done so. Call
/// it from main before any thread starts.
bool provide_home(environment& variables);

/// Returns muster's folder in the one that the variable `xdg` names or, without it, in HOME/`usual`: "/home/u/.config/muster" of XDG_CONFIG_HOME and
/// .config. Empty if neither variable is set. Pure.
std::string folder_of_user(environment const& variables, char const* xdg, std::string_view usual);

inline std::string config_folder(environment const& variables) {
    return folder_of_user(variables, "XDG_CONFIG_HOME", ".config");
}

/// Returns the user's name, or the number as a text for one without an entry in passwd. May ask a name service.
std::string name_of_user(uid_t user);

}  // namespace muster
