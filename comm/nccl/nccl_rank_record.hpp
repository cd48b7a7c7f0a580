// The record that each rank sends to all others before they create an NCCL communicator. Pure, except for describe_rank.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "comm/backend/processes/process_watch.hpp"
#include "comm/backend/world_record.hpp"
#include "comm/nccl/library/nccl_library.hpp"

namespace muster::nccl {

/// Sent as bytes: no pointers.
struct rank_record {
    world_record place;
    process_name process;
    int nccl_version = 0;
    char gpu[48] = {};     ///< "GPU-…", ended by 0
    unique_id id{};        ///< rank 0's is that of the communicator
    int fault_code = 0;    ///< errc of what the rank could not do, where `fault` is not ""
    char fault[400] = {};  ///< why it cannot take part, cut if longer
};

/// This process's record, without the id.
rank_record describe_rank(identity const& who, comm_options const& options, int nccl_version, std::string_view gpu) noexcept;

/// Tells the others, in place of throwing before they know, that this rank cannot take part.
void set_fault(rank_record& record, errc code, std::string_view why) noexcept;

/// A record out of the bytes that a rank sent. Throws errc::peer_failed, naming the rank, if their number is another.
rank_record read_record(std::span<std::byte const> bytes, int rank, identity const& who);

/// Throws as check_world() does, errc::peer_failed where NCCL's versions differ, and, if ranks cannot take part, comm_error with
/// the first one's code that names them and why: the same on every rank.
void check_records(std::span<rank_record const> records, identity const& who);

/// "ranks 2 and 3 on n1 share GPU-…; …" with what can be done about it, or "" if every rank has its own GPU.
std::string shared_gpus(std::span<rank_record const> records);

}  // namespace muster::nccl
