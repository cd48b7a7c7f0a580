// Finds the version in what a program prints of itself.
#pragma once

#include <compare>
#include <optional>
#include <string_view>

namespace muster {

struct program_version {
    int major = 0;
    int minor = 0;
    auto operator<=>(program_version const&) const = default;
};

/// The first "N.N" in what a program says of itself ("slurm-wlm 22.05.8"), or nothing.
std::optional<program_version> find_version(std::string_view text);

}  // namespace muster
