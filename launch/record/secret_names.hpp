// Names of variables that hold secrets: left out of what a run leaves on disk.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Whether a variable's value may be a secret: by its name (HF_TOKEN, WANDB_API_KEY, AWS_*, PGPASSWORD), or since it holds a URL with a password or
/// a token (https://TOKEN@host/). Pure.
bool may_be_secret(std::string_view name, std::string_view value);

/// Removes what may be a secret; returns the names. Pure.
std::vector<std::string> leave_out_secrets(environment& variables);

/// An entry of --env without its value where that may be a secret. Pure.
std::string without_secret(std::string const& assignment);

}  // namespace muster
