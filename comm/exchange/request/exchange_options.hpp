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
    /// Of the communicator below. Its deadline is set to `deadline`.
    comm_options comm;

    /// Small tensors are reduced together in collectives of at most so many bytes.
    std::size_t fusion_bytes = std::size_t{16} << 20;

    /// How long a rank gathers submissions before it negotiates them, so that they can be fused. It does not wait if somebody
    /// waits for a result, or if fusion_bytes have been submitted.
    duration cycle_time{0.001};

    /// From submission until a result must be there; 0 is without end. A wait() with a shorter one shortens it.
    duration deadline{1800.0};

    /// A tensor that some ranks have submitted and others have not is warned about after this; 0 is never.
    duration stall_warning{60.0};

    /// How many names the response cache holds before it has seen that more are needed.
    std::size_t cache_capacity = 1024;

    /// How f32 tensors of sums and averages are sent, unless a call says otherwise, and whether what
    /// rounding loses is kept for the next tensor of that name. See exchange.
    compression wire = compression::none;
    bool error_feedback = false;

    /// What messages add to this rank's host: "GPU 2"; may differ on each rank.
    std::string device_name;

    /// Which generation of the world it is made in: part of the names of timelines and flight recorders.
    int generation = 0;

    /// Where each rank writes its timeline from the start on; empty: not before start_timeline().
    std::string timeline_folder;
    bool mark_cycles = false;

    /// Where each rank leaves its last operations when the exchange fails; empty: nowhere.
    std::string flight_folder;
};

/// The defaults, changed by MUSTER_COMM_BACKEND, MUSTER_ADDRESSES (of the ranks, separated by semicolons: comm_options::addresses), GLOO_SOCKET_IFNAME
/// (comm_options::network_interface), MUSTER_KEEP_MPI (0 or 1), MUSTER_GPU_INDEX, MUSTER_FUSION_BYTES, MUSTER_CYCLE_TIME, MUSTER_COMM_DEADLINE,
/// MUSTER_STALL_WARNING, MUSTER_CACHE_CAPACITY, MUSTER_COMPRESSION (none, f16, bf16), MUSTER_ERROR_FEEDBACK (0 or 1),
/// MUSTER_TIMELINE, MUSTER_TIMELINE_MARK_CYCLES (0 or 1) and MUSTER_FLIGHT_RECORDER (folders). Throws parse_error naming the
/// variable, and errc::unavailable if MUSTER_STATIC_GRAPH or MUSTER_AUTOTUNE asks for what was taken out.
exchange_options read_exchange_options(environment const& variables);

}  // namespace muster
