// Whether the ranks that met believe to be in the same world.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_options.hpp"
#include "comm/backend/process_watch.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// What each rank tells all others when a communicator is made. Sent as bytes: no pointers.
struct world_record {
    int rank = 0;
    int world_size = 0;
    std::uint64_t job = 0;  ///< hash of the namespace
    int direct_ranks = 0;
    std::array<std::uint64_t, 16>
        processors{};     ///< a bit for each that the rank may run on; none if it has too many for this set
    char host[108] = {};  ///< cut if longer, always ended by 0
    process_name process;
};

/// Asks the system for the calling thread's processors.
world_record describe_world(identity const& who, comm_options const& options) noexcept;

/// Whether the ranks on `host` are more than the processors that they may run on: whoever waits must then give its processor
/// away. Pure.
bool is_crowded(std::span<world_record const> records, std::string_view host) noexcept;

/// The ranks, by their place in `records`, whose processes are gone or stopped, as far as they can be seen from here. `own` is
/// not asked about. Reads /proc.
std::vector<late_rank> lost_ranks(std::span<world_record const> records, int own);

/// Pure, and with the same outcome on every rank that holds the same records: throws errc::singleton if the ranks that met (one
/// record each) are more or fewer than their identities say, errc::peer_failed if their ranks, namespaces or options contradict
/// each other. `who` only colours the message.
void check_world(std::span<world_record const> records, identity const& who);

}  // namespace muster
