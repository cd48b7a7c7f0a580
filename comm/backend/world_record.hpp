// The record that each rank sends to all others when a communicator is made. A check tells whether they are of one world.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/backend/comm_options.hpp"
#include "comm/backend/processes/process_watch.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// Sent as bytes: no pointers.
struct world_record {
    int rank = 0;
    int world_size = 0;
    std::uint64_t job = 0;  ///< hash of the namespace
    int direct_ranks = 0;
    std::array<std::uint64_t, 16>
        processors{};     ///< a bit for each that the rank may run on; none set if there are too many for it
    char host[108] = {};  ///< cut if longer, always ended by 0
    process_name process;
};

/// Returns this rank's record, with the processors that the calling thread may run on.
world_record describe_world(identity const& who, comm_options const& options) noexcept;

/// Returns whether the ranks on `host` are more than the processors that they may run on: a waiting rank must then yield its own.
/// Pure.
bool is_crowded(std::span<world_record const> records, std::string_view host) noexcept;

/// Returns the processes in the order of the records. Pure.
std::vector<process_name> processes_of(std::span<world_record const> records);

/// Returns the host names in the order of the records. Pure.
std::vector<std::string> hosts_of(std::span<world_record const> records);

/// Throws errc::singleton if the ranks that met (one record each) are more or fewer than their identities say, errc::peer_failed
/// if their ranks, namespaces or options contradict each other. Every rank with the same records throws the same. `who` begins
/// the message. Pure.
void check_world(std::span<world_record const> records, identity const& who);

}  // namespace muster
