// The text and the JSON of muster doctor --allocation.
#pragma once

#include "launch/settings/part_functions.hpp"

namespace muster {

/// Examines every node of an allocation (part_functions).
examined_nodes examine_nodes(run_options const& options, environment const& variables, std::string const& scratch_dir,
                             std::size_t most_width);

}  // namespace muster
