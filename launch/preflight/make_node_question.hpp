// Makes the question that a probe answers about its node.
#pragma once

#include <vector>

#include "launch/settings/run_context.hpp"
#include "launch/wire/node_report.hpp"

namespace muster {

/// The question about one of `nodes` (indices into the allocation's): the program, and the names of all of them (of many: a
/// sample). `run.options.command` may be empty.
node_question make_node_question(run_context const& run, std::vector<int> const& nodes, int node);

}  // namespace muster
