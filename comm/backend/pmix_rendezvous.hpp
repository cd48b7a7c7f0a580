// The rendezvous of a job's ranks over PMIx. Gathers bytes of every rank before they can send by themselves.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// Every rank's `mine`, in the order of the ranks, by PMIx: put, commit, fence, get. Collective over the job, whose ranks all
/// give the same `key`, never used before (put a number into it that counts up). An MPI library in the same process may use PMIx
/// too; a pmix::client of the program's own may not, since the first call makes one and keeps it until the process ends. One
/// thread at a time. A world of one needs no PMIx. Throws errc::unavailable where there is no PMIx server, comm_error
/// (errc::timeout or errc::peer_failed) naming the ranks that did not come, as far as they can be known, errc::singleton if the
/// server knows another world than `who`.
///
/// A client that leaves at once lets the program end as it likes, where one that stays has to leave PMIx in order. Ranks that have left and come again may be
/// taken for ended ones by the server; they then meet once more.
enum class pmix_client_stays { to_the_end, for_this };
std::vector<std::vector<std::byte>> gather_by_pmix(identity const& who, std::string_view key, std::span<std::byte const> mine,
                                                   duration deadline, pmix_client_stays how = pmix_client_stays::to_the_end);

}  // namespace muster
