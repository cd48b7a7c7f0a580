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

}  // namespace muster
