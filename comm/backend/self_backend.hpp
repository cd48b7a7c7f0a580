// A world of one rank: the example of a backend, and what single-rank programs and tests run on.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/backend/collective_backend.hpp"

namespace muster {

std::optional<std::string> self_unavailable(identity const& who, comm_options const& options);
std::unique_ptr<collective_backend> make_self_backend(identity const& who, comm_options const& options);

}  // namespace muster
