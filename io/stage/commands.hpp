// The commands of muster-stage: their rows and the functions that run them.
#pragma once

#include "base/command/command_set.hpp"
#include "pmix/identity.hpp"

namespace muster::stage {

extern command_row const convert_row;
extern command_row const verify_row;
extern command_row const info_row;

/// Each runs on every rank of its world, prints on rank 0, returns an exit code and throws muster::error.
int convert_command(given_options const& given, identity const& who);
int verify_command(given_options const& given, identity const& who);
int info_command(given_options const& given, identity const& who);

}  // namespace muster::stage
