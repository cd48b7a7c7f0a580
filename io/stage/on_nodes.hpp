// The frame of commands that work once on every node: one rank of a node does the work, the others wait.
#pragma once

#include <functional>

#include "base/command/given_options.hpp"
#include "base/environment.hpp"
#include "comm/communicator.hpp"
#include "io/copy/copy_tree.hpp"
#include "pmix/identity.hpp"

namespace muster::stage {

// Requests and reports of the commands that copy: reads them from the command line, prints what was done.

/// Sources and target from the words, and --check, --fsync, --dry-run. Throws errc::usage.
copy_request copy_request_of(given_options const& given, environment const& variables);

/// Prints what was done, on rank 0. Collective.
void print_copy(copy_request const& request, copy_report const& mine, communicator& nodes, double seconds, bool as_json);

/// Runs `body(nodes)` on the first rank of every node, `nodes` being the communicator of these ranks, and returns its exit code,
/// which is the same on all ranks. The other ranks wait without using their processors. A note says so where the job has more nodes. Collective.
int on_nodes(identity const& who, environment const& variables, std::function<int(communicator& nodes)> const& body);

/// The nodes of the Slurm or PBS job that this runs in; 0 outside of one, or where it is not told.
int nodes_of_job(environment const& variables);

/// Sum of a number of every rank.
std::uint64_t sum_of(communicator& nodes, std::uint64_t mine);

}  // namespace muster::stage
