// The rank's side of the membership of an elastic run: a state machine that follows its generation, losses and changes of hosts by the launcher's
// messages.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pmix/member_message.hpp"

namespace muster {

/// Plain values and pure functions: no socket, no lock, no clock. member_link drives it.
struct member_view {
    std::optional<elastic::generation> now = {};  ///< this rank's last known one; none before the launcher's first message
    std::optional<elastic::lost> lost = {};       ///< of `now`: all of its ranks that are gone
    elastic::hosts_changed hosts = {};            ///< since the last take_host_changes()
    bool closed = false;                          ///< no message comes any more
};

/// The news for the communicators of the present generation.
struct news_of_world {
    std::string why;
    std::vector<int> ranks = {};  ///< of the world
    bool is_over = false;         ///< another generation has begun: this is their last message
    bool operator==(news_of_world const&) const = default;
};

/// Takes a message of the launcher. Messages of other generations, and those that only ranks send, change nothing.
std::optional<news_of_world> take(member_view& view, elastic::message const& word);
void close(member_view& view);

/// Returns whether ranks of that generation are lost, or it is over, or no message comes any more.
bool is_broken(member_view const& view, int generation);

/// The state of a rank's wait for the generation after `after`.
enum class reform_state { waits, begun, closed };
reform_state state_of_reform(member_view const& view, int after);

elastic::hosts_changed take_host_changes(member_view& view);

/// Returns those of `ranks`, which count in the world, that a communicator of these members has, numbered as in it; empty `members`: the whole
/// world. Nothing: it has none of them, and goes on.
std::optional<std::vector<int>> ranks_within(std::span<int const> members, std::vector<int> const& ranks);

}  // namespace muster
