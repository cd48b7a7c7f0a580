// The rendezvous of a job's ranks over PMIx. Gathers bytes of every rank before they can send by themselves.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// Returns every rank's `mine`, by rank, over PMIx: put, commit, fence, get. Collective over the job; all ranks give the same
/// `key`, never used before (put a number into it that counts up). An MPI library in the same process may use PMIx too, but the
/// program may not have its own pmix::client, since the first call makes one and keeps it until the process ends. One thread at a
/// time. A world of one needs no PMIx. Throws errc::unavailable without a PMIx server, comm_error (errc::timeout or
/// errc::peer_failed) naming the ranks that did not come, as far as they are known, and errc::singleton if the server knows
/// another world than `who`.
///
/// After for_this the program may end as it likes; a client that stays has to leave PMIx in order. The server may take ranks that have left and come again
/// for ended ones; they then meet once more.
enum class pmix_client_stays { to_the_end, for_this };
std::vector<std::vector<std::byte>> gather_by_pmix(identity const& who, std::string_view key, std::span<std::byte const> mine,
                                                   duration deadline, pmix_client_stays how = pmix_client_stays::to_the_end);

}  // namespace muster
