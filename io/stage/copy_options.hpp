// Requests and reports of the commands that copy: reads them from the command line, prints what was done.
#pragma once

#include <string>

#include "base/command/given_options.hpp"
#include "base/environment.hpp"
#include "comm/communicator.hpp"
#include "io/copy/copy_tree.hpp"

namespace muster::stage {

/// Sources and target from the words, and --check, --fsync, --threads, --chunk, --dry-run. Throws errc::usage.
copy_request copy_request_of(given_options const& given, environment const& variables);

/// Prints what was done, on rank 0. Collective.
void print_copy(copy_request const& request, copy_report const& mine, communicator& nodes, double seconds, bool as_json);

}  // namespace muster::stage
