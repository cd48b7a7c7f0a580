// The launcher's request to the process that leads the keepers, before a generation: its words, how long it waits for the answer,
// and what follows where none comes.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "launch/wire/messages.hpp"

namespace muster {

// Holds plain values and pure functions. Times are in seconds on a clock that only goes forward.

/// The leader says every second that it is still busy; after this time without a word it has been stopped, perhaps.
inline constexpr double patience_with_leader_s = 15;

/// `node_of`: where each rank will run, among `hosts`, in the order of ranks.
wire::place_states ask_to_place(std::vector<std::string> hosts, std::vector<std::size_t> const& node_of,
                                std::string session_dir = {});

/// Holds what limits a wait for the leader's answer.
struct leader_wait {
    double heard_s = 0;                                      ///< the last sign of life
    double end_s = std::numeric_limits<double>::infinity();  ///< --timeout
};
enum class leader_state { awaited, has_ended, out_of_time, silent };
leader_state judge_leader(leader_wait const& wait, double now_s, bool lives);

/// Returns whether a request that has failed `failures` times for want of a leader goes to another one. The first generation has nothing
/// to lose, and ends with the fault.
bool asks_another_leader(bool first_generation, int failures);

}  // namespace muster
