// Options of an exchange; read from MUSTER_* variables.
#pragma once

#include <cstddef>
#include <string>

#include "base/environment.hpp"
#include "base/units.hpp"
#include "comm/backend/comm_options.hpp"
#include "comm/tensor/compress.hpp"

namespace muster {

/// The same on all ranks, except for the folders.
struct exchange_options {
    /// The options of the communicator; its deadline is set to the one below.
    comm_options comm;

    /// Small tensors are reduced together in collectives of at most this many bytes.
    std::size_t fusion_bytes = std::size_t{16} << 20;

    /// A rank gathers submissions for this long before it negotiates them, so that they can be fused. It does not wait if
    /// somebody waits for a result, or if fusion_bytes have been submitted.
    duration cycle_time{0.001};

    /// A result must be there this long after its submission; 0 is without end. A wait() with a shorter deadline shortens it.
    duration deadline{1800.0};

    /// A warning names tensors that only some ranks have submitted for this long; 0 is never.
    duration stall_warning{60.0};

    /// The response cache holds this many names until it has seen that it needs more.
    std::size_t cache_capacity = 1024;

    /// The type in which f32 tensors of sums and averages are sent, unless a call says otherwise; error feedback keeps what
    /// rounding loses for the next tensor of that name. See exchange.
    compression wire = compression::none;
    bool error_feedback = false;

    /// Messages add this to this rank's host: "GPU 2"; it may differ on each rank.
    std::string device_name;

    /// The generation of the world in which it is made: part of the names of timelines and flight recorders.
    int generation = 0;

    /// The folder in which each rank writes its timeline from the start on; empty: not before start_timeline().
    std::string timeline_folder;
    bool mark_cycles = false;

    /// The folder in which each rank leaves its last operations when the exchange fails; empty: nowhere.
    std::string flight_folder;
};

/// Returns the defaults, changed by MUSTER_COMM_BACKEND, MUSTER_ADDRESSES (of the ranks, separated by semicolons: comm_options::addresses),
/// GLOO_SOCKET_IFNAME (comm_options::network_interface), MUSTER_KEEP_MPI (0 or 1), MUSTER_GPU_INDEX, MUSTER_FUSION_BYTES, MUSTER_CYCLE_TIME,
/// MUSTER_COMM_DEADLINE, MUSTER_STALL_WARNING, MUSTER_CACHE_CAPACITY, MUSTER_COMPRESSION (none, f16, bf16), MUSTER_ERROR_FEEDBACK (0 or 1),
/// MUSTER_TIMELINE, MUSTER_TIMELINE_MARK_CYCLES (0 or 1) and MUSTER_FLIGHT_RECORDER (folders). Throws parse_error naming the variable, and
/// errc::unavailable if MUSTER_STATIC_GRAPH or MUSTER_AUTOTUNE asks for what no longer exists.
exchange_options read_exchange_options(environment const& variables);

}  // namespace muster
