// The parts that a build of muster may leave out (cmake/muster_parts.cmake).
#pragma once

#include <string>
#include <string_view>

#include "base/command/command_set.hpp"

namespace muster {

/// Returns whether this build has the part; the core, "", is always there.
bool has_part(std::string_view part) noexcept;

/// Returns the parts as `muster --version` prints them: "bench, jobs, keras (without data)".
std::string_view parts_text() noexcept;

/// The error of what needs a part that was left out: "--keep-state: this muster was built without the part keep; …". Pure.
std::string absent_part(std::string_view what, std::string_view part);

/// The error of a command whose part was left out, or whose program is not in muster's folder. Pure.
std::string absent_command(command_row const& row);

}  // namespace muster
