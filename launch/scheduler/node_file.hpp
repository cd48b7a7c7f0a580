// Reads node files of schedulers, which name a host on one line for each of its slots.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/scheduler/allocation.hpp"

namespace muster {

/// The hosts of the file in the order of their first appearance, with as many slots as they have lines, called as the first of these
/// spells them: "n1" and "n1.example" are one host. Blank lines and comments do no harm. A line "host-gpu3" (Cobalt's and Torque's single GPUs) is a GPU of "host", if `gpu_entries`. Throws parse_error
/// with a caret; a file that names no host is one.
std::vector<node> parse_node_file(std::string_view text, std::string_view origin, bool gpu_entries = false);

}  // namespace muster
