// The subcommands of muster-stage.
#pragma once

#include <string>
#include <vector>

#include "pmix/identity.hpp"

namespace muster::stage {

/// Each runs on every rank of its world, prints on rank 0, returns an exit code and throws muster::error.
int convert_command(std::vector<std::string> const& args, identity const& who);
int verify_command(std::vector<std::string> const& args, identity const& who);
int info_command(std::vector<std::string> const& args, identity const& who);

}  // namespace muster::stage
