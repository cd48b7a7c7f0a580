#include "comm/backend/late_ranks.hpp"

#include <fmt/format.h>

namespace muster {

std::vector<late_rank> lost_ranks(std::span<process_name const> processes, int own) {
    std::vector<late_rank> lost;
    for (std::size_t rank = 0; rank < processes.size(); ++rank) {
        if (static_cast<int>(rank) == own) continue;
        auto const state = state_of(processes[rank]);
        if (is_lost(state))
            lost.push_back({static_cast<int>(rank), state == process_state::gone, describe(processes[rank], state)});
    }
    return lost;
}

std::string describe_late(std::span<late_rank const> late, std::span<std::string const> hosts) {
    std::string text;
    for (auto const& each : late)
        text += fmt::format("{}rank {} on {} ({})", text.empty() ? "" : ", ", each.rank,
                            hosts[static_cast<std::size_t>(each.rank)], each.why);
    return text;
}

std::vector<int> ranks_of(std::span<late_rank const> late) {
    std::vector<int> ranks;
    for (auto const& each : late) ranks.push_back(each.rank);
    return ranks;
}

}  // namespace muster
