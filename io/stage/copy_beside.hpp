// The copying of results while a command runs: starts the command, and copies at its end, at signals and at intervals.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/units.hpp"
#include "io/copy/copy_tree.hpp"
#include "pmix/identity.hpp"

namespace muster::stage {

struct beside_request {
    copy_request copy;
    std::vector<std::string> command;
    std::optional<duration> every;  ///< nothing: at signals and at the end alone
    identity who;
};

/// Copies once, by this node alone, and tells on standard error what was written and what was left. Throws as copy_tree().
void copy_alone(copy_request const& request, std::string const& host);

/// Runs the command on this rank, with its standard input and output, and passes SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 on
/// to it; SIGUSR1 and SIGUSR2, which say that time is running out, only if it handles them, since they would end it. The first rank of a node copies meanwhile: every so often, and at SIGUSR1 and SIGUSR2. When its command has ended, however
/// that was, each rank copies once more, one after the other, so that the last one of the node brings everything; no rank waits for
/// another's command. No communicator is made: the command is the rank. Returns the command's exit code (128 + n: ended by signal
/// n; 126, 127: it cannot be executed, it is not there); that of the last copy's error only where the command's is 0. Call it from
/// the main thread, before there are others.
int copy_beside(beside_request const& request, environment const& variables);

}  // namespace muster::stage
