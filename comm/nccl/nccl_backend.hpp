// The backend over NCCL serves tensors in the memory of NVIDIA GPUs.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_options.hpp"
#include "comm/backend/world_record.hpp"
#include "comm/cuda/driver.hpp"
#include "comm/nccl/library/nccl_library.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// Says what was looked for and not found: NCCL, the CUDA driver, a GPU.
std::optional<std::string> nccl_unavailable(identity const& who, comm_options const& options);

/// Collective, also over ranks that nccl_unavailable() refuses: if one of them lacks something, all throw before anything is made
/// (comm_error with the first such rank's code, naming those ranks). Meets by PMIx, makes a non-blocking NCCL communicator on
/// this rank's GPU (comm_options::device) and waits for it for at most options.deadline. Throws what gather_by_pmix and
/// cuda::choose_device throw, comm_error (errc::peer_failed) if the ranks contradict each other or share a GPU, comm_error
/// (errc::timeout), nccl_error, cuda_error.
///
/// Collectives run on a separate stream, in order; f16 and bf16 are added as NCCL adds them. If one fails, or passes its
/// deadline, all NCCL communicators of this process are aborted: each of their unfinished operations throws, whether or not the
/// device reports that it has finished. Every thread may use its own communicators.
std::unique_ptr<collective_backend> make_nccl_backend(identity const& who, comm_options const& options);

/// The same for ranks that meet by `gather` instead of PMIx.
std::unique_ptr<collective_backend> make_nccl_backend_over(gather_function const& gather, identity const& who,
                                                           comm_options const& options);

namespace nccl {

/// The parts of a backend; tests give their own.
struct parts {
    found_library const* nccl = nullptr;
    cuda::found_driver const* driver = nullptr;
    gather_function gather;
};

std::optional<std::string> unavailable(parts const& from);
std::unique_ptr<collective_backend> make_backend(identity const& who, comm_options const& options, parts const& from);

}  // namespace nccl

}  // namespace muster

// The record that each rank sends to all others before they create an NCCL communicator. Pure, except for describe_rank.

namespace muster::nccl {

/// Sent as bytes: no pointers.
struct rank_record {
    world_record place;
    int nccl_version = 0;
    char gpu[48] = {};     ///< "GPU-…", ended by 0
    unique_id id{};        ///< rank 0's is the communicator's
    int fault_code = 0;    ///< errc of the failure, if `fault` is not ""
    char fault[400] = {};  ///< the reason why it cannot take part, cut if longer
};

/// Returns this process's record, without the id.
rank_record describe_rank(identity const& who, comm_options const& options, int nccl_version, std::string_view gpu) noexcept;

/// Marks a record, so that the other ranks learn that this one cannot take part; throwing would leave them waiting.
void set_fault(rank_record& record, errc code, std::string_view why) noexcept;

/// Returns the record in the bytes that a rank sent. Throws errc::peer_failed, naming the rank, if their number is wrong.
rank_record read_record(std::span<std::byte const> bytes, int rank, identity const& who);

/// Throws as check_world() does, errc::peer_failed if NCCL's versions differ, and, if ranks cannot take part, comm_error with the
/// first one's code that names them and the reasons: the same on every rank.
void check_records(std::span<rank_record const> records, identity const& who);

/// Returns "ranks 2 and 3 on n1 share GPU-…; …" with what can be done about it, or "" if every rank has its own GPU.
std::string shared_gpus(std::span<rank_record const> records);

}  // namespace muster::nccl
