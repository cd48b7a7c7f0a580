// Messages between a rank of an elastic run and its launcher: who is lost, who wants the next generation, and who is in it.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pmix/identity.hpp"

namespace muster::elastic {

/// The variable with the descriptor, a socket of sequenced packets, that a rank inherits, and the version of the messages, of which a packet is one:
/// "7/2". A library of another version leaves it alone.
inline constexpr std::string_view events_variable = "MUSTER_EVENTS";
std::string events_value(int descriptor);
/// Returns the descriptor, or -1: that is not one, or the messages are of another version.
int events_descriptor(std::string_view value) noexcept;

/// The variable that is set where ranks of such a run may be on several nodes, now or later: each then tells where it listens.
inline constexpr std::string_view over_nodes_variable = "MUSTER_OVER_NODES";

/// The variable that names a rank's part of the memory which outlives it (comm/membership/kept_state.hpp): "PART:FILE".
inline constexpr std::string_view kept_state_variable = "MUSTER_KEPT_STATE";

/// No longer message is sent or read: as much as a socket takes by default. The addresses of so many ranks fit in, with three each.
inline constexpr std::size_t longest_bytes = std::size_t{160} << 10;
inline constexpr std::size_t most_over_nodes = 1000;

// Messages from a rank:

/// Asks “Who am I?”. `generation` answers it, at once or when the rank's first one begins.
struct hello {
    std::string address;  ///< where it listens for ranks on other nodes (tcp_address()); empty: all are on one
    bool operator==(hello const&) const = default;
};
/// This program calls reform() when a collective fails: the others need not end with a rank that is lost.
struct announce {
    bool operator==(announce const&) const = default;
};
/// The rank has left the world of generation `after`, and waits for the next one.
struct reform {
    int after = 0;
    bool has_state = false;  ///< it can give the others what a newcomer lacks
    bool at_commit = false;  ///< no collective has failed: all ranks have the same state
    int port = 0;            ///< free on its node, for MASTER_PORT; 0: none was found
    bool operator==(reform const&) const = default;
};

// Messages to a rank:

/// These ranks of that generation are gone.
struct lost {
    int generation = 0;
    std::vector<int> ranks;
    std::string why;  ///< "rank 2 on node1 (member 2) was killed by signal 9 (SIGKILL)"
    bool operator==(lost const&) const = default;
};
/// A generation begins.
struct generation {
    int number = 0;
    identity who;                        ///< the rank's place in it; rank -1: it has none
    std::vector<int> members;            ///< numbers of its members, by rank
    bool sync = true;                    ///< state is to be spread from rank 0; the same for all
    std::string master;                  ///< MASTER_ADDR; empty: as before
    int master_port = 0;                 ///< MASTER_PORT; 0: as before
    std::vector<std::string> addresses;  ///< of its members over several nodes, by rank, from their `hello`; else empty
    bool operator==(generation const&) const = default;
};
/// Hosts or slots were added or removed: the world may be formed anew at the next commit.
struct hosts_changed {
    bool added = false, removed = false;
    bool operator==(hosts_changed const&) const = default;
};

using message = std::variant<hello, announce, reform, lost, generation, hosts_changed>;

std::string encode(message const& what);

/// Throws errc::parse for what encode() does not make. Pure.
message decode(std::string_view text);

}  // namespace muster::elastic
