// Conversion of settings to the plain structs that the launcher works with.
#pragma once

#include "launch/placement/placement_request.hpp"
#include "launch/scheduler/scheduler_sources.hpp"
#include "launch/settings/resolve_settings.hpp"
#include "launch/settings/run_options.hpp"

namespace muster {

placement_request make_placement_request(settings_result const& given);
allocation_choice make_allocation_choice(settings_result const& given);
/// Throws errc::usage if there is no program.
run_options make_run_options(settings_result const& given);

/// The words of a command line that give a setting these entries: "--env", "A=1", "--env", "B=2"; "--no-smt". Pure.
std::vector<std::string> words_of_setting(setting const& row, std::vector<std::string> const& entries);

}  // namespace muster
