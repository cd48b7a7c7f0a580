#include "launch/keep/machines/placing.hpp"

#include <utility>

#include "launch/remote/host_ranks.hpp"

namespace muster {

wire::place_states ask_to_place(std::vector<std::string> hosts, std::vector<std::size_t> const& node_of,
                                std::string session_dir) {
    std::vector<std::vector<int>> ranks(hosts.size());
    for (std::size_t rank = 0; rank < node_of.size(); ++rank) ranks.at(node_of[rank]).push_back(static_cast<int>(rank));
    return {.hosts = std::move(hosts),
            .ranks = pack_ranks(ranks),
            .world_size = static_cast<int>(node_of.size()),
            .session_dir = std::move(session_dir)};
}

leader_state judge_leader(leader_wait const& wait, double now_s, bool lives) {
    if (!lives) return leader_state::has_ended;
    if (now_s >= wait.end_s) return leader_state::out_of_time;
    return now_s - wait.heard_s < patience_with_leader_s ? leader_state::awaited : leader_state::silent;
}

bool asks_another_leader(bool first_generation, int failures) {
    return !first_generation && failures < 2;
}

}  // namespace muster
