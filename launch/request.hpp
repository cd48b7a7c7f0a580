// What the user asks of placement.
#pragma once

#include <optional>
#include <string_view>

namespace muster {

enum class bind_policy {
    share,  ///< each rank gets an equal part of the cores near its GPU, or of all cores
    core,   ///< each rank gets one core
    numa,   ///< each rank gets its whole NUMA node
    none,   ///< no rank is bound
};
std::string_view to_string(bind_policy policy) noexcept;
/// Throws errc::usage naming the possible words.
bind_policy parse_bind_policy(std::string_view word);

struct request {
    std::optional<int> ranks;           ///< world size; without it: every slot one rank
    std::optional<int> slots_per_node;  ///< instead of what the node has
    int ranks_per_gpu = 1;              ///< above 1: ranks share GPUs, because the user said so
    bind_policy bind_to = bind_policy::share;
    std::optional<int> cpus_per_rank;  ///< cores of each rank
    bool operator==(request const&) const = default;
};

}  // namespace muster
