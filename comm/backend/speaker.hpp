// The name of a rank as messages have it.
#pragma once

#include <fmt/format.h>

#include <string>

#include "pmix/identity.hpp"

namespace muster {

/// Returns "rank 1 of 4 on n2": who throws, or logs.
inline std::string speaker(identity const& who) {
    return fmt::format("rank {} of {} on {}", who.rank, who.world_size, who.host);
}

}  // namespace muster
