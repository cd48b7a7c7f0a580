// The ranks that keep others waiting: found by their processes, and described in one manner in all messages.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_options.hpp"
#include "comm/backend/processes/process_watch.hpp"

namespace muster::detail {

// The message of a rank that gives up. It tells the others whom it blames, so that all blame the same rank. Pure.

/// Writes "3 process 4711 is stopped", a line for each rank; cut to 1 KiB, which one message without a handshake holds.
std::string write_blame(std::vector<late_rank> const& late);

/// Reads such a message; skips lines of another form and ranks outside a world of `size`. All ranks in it count as dead, since
/// the sender, without which nothing goes on, gave them up. The reasons name `sender` ("rank 1 on n0") and what it `did`.
std::vector<late_rank> read_blame(std::string_view text, std::string_view sender, int size, std::string_view did = "gave it up");

}  // namespace muster::detail

namespace muster {

/// Returns the ranks, by their place in `processes`, whose processes are gone or stopped as far as this node can see. Leaves out
/// rank `own`. Reads /proc.
std::vector<late_rank> lost_ranks(std::span<process_name const> processes, int own);

/// Returns "rank 3 on n2 (process 4711 is stopped), rank 5 on n3 (…)", or "" for none. `hosts`: of all ranks, by rank. Pure.
std::string describe_late(std::span<late_rank const> late, std::span<std::string const> hosts);

/// Returns the ranks for comm_error::culprits(). Pure.
std::vector<int> ranks_of(std::span<late_rank const> late);

/// Runs one collective to its end. Throws comm_error: errc::timeout after options.deadline (0: none), saying that `why` did not
/// finish and who is late; errc::peer_failed as soon as a rank is known to be gone, or options.loss reports it.
void run_now(collective_backend& backend, collective const& what, comm_options const& options, std::string_view why);

/// Returns every rank's record, by rank, sent as bytes. Throws as run_now().
template <typename Record>
std::vector<Record> gather_records(collective_backend& backend, Record mine, comm_options const& options, std::string_view why) {
    std::vector<Record> all(backend.hosts().size());
    auto const bytes = [](std::span<Record> of) { return tensor_view{of.data(), of.size_bytes(), dtype::u8, memory_kind::host}; };
    run_now(backend, {collective::kind::allgather, bytes({&mine, 1}), bytes(all)}, options, why);
    return all;
}

}  // namespace muster
