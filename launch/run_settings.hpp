// Settings as the plain structs that the launcher works with.
#pragma once

#include "launch/request.hpp"
#include "launch/run_options.hpp"
#include "launch/scheduler/scheduler.hpp"
#include "launch/settings_resolve.hpp"

namespace muster {

request make_request(settings_result const& given);
allocation_choice make_allocation_choice(settings_result const& given);
/// Throws errc::usage if there is no program.
run_options make_run_options(settings_result const& given);

}  // namespace muster
