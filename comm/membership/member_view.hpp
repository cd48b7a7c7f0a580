// The rank's side of the membership of an elastic run, as a state machine: its generation, losses and changes of hosts, by the launcher's messages.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pmix/member_message.hpp"

namespace muster {

/// Plain values and pure functions: no socket, no lock, no clock. member_link drives it.
struct member_view {
    std::optional<elastic::generation> now = {};  ///< that this rank is in, or was in last; none: it has not been told yet
    std::optional<elastic::lost> lost = {};       ///< of `now`: all of its ranks that are gone
    elastic::hosts_changed hosts = {};            ///< since somebody asked last
    bool closed = false;                          ///< no word comes any more
};

/// What the communicators of the present generation are to hear.
struct news_of_world {
    std::string why;
    std::vector<int> ranks = {};  ///< of the world
    bool is_over = false;         ///< another generation has begun: they hear nothing more
    bool operator==(news_of_world const&) const = default;
};

/// Takes a word of the launcher. Words of other generations, and what only ranks say, change nothing.
std::optional<news_of_world> take(member_view& view, elastic::message const& word);
void close(member_view& view);

/// Whether ranks of that generation are lost, or it is over, or nobody will tell.
bool is_broken(member_view const& view, int generation);

/// Of one that has left generation `after`.
enum class reform_state { waits, begun, closed };
reform_state state_of_reform(member_view const& view, int after);

elastic::hosts_changed take_host_changes(member_view& view);

/// Ranks of the world, as those of a communicator of these members; empty `members`: of the whole world. Nothing: it has none of them, and goes on.
std::optional<std::vector<int>> ranks_within(std::span<int const> members, std::vector<int> const& ranks);

}  // namespace muster
