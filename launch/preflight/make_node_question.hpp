// What a probe is asked to look at.
#pragma once

#include <vector>

#include "base/environment.hpp"
#include "launch/scheduler/allocation.hpp"
#include "launch/settings/run_options.hpp"
#include "launch/wire/node_report.hpp"

namespace muster {

/// The question about one of `nodes` (indices into the allocation's): the program, and the names of all of them (of many: a
/// sample). `options.command` may be empty.
node_question ask_about(run_options const& options, environment const& inherited, allocation const& given,
                        std::vector<int> const& nodes, int node);

}  // namespace muster
