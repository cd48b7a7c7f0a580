// Writes a number of ranks as people say it: "1 rank", "4 ranks".
#pragma once

#include <fmt/format.h>

#include <string>

namespace muster {

inline std::string ranks_text(int ranks) {
    return fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s");
}

}  // namespace muster
