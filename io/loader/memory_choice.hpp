// The choice of a loader's memory mode: follows from the machine, the file, the sampler and the ranks.
#pragma once

#include "io/loader/loader.hpp"

namespace muster {

/// What decides about the memory mode; with several ranks the worst of all of them.
struct memory_circumstances {
    bool mappable = false;  ///< the file is contiguous
    bool windowed = false;  ///< the sampler has a window, and the file can be read by chunks
    bool sharded = false;   ///< the sampler draws from this rank's shard
    bool together = false;  ///< several ranks of this node can share memory
    bool fits = false;
};

/// Where nothing was asked for. Pure.
memory_mode choose_memory(memory_circumstances const& now);

/// Whether these options go with the dataset and the sampler; `together`: the loader has a communicator. Throws errc::usage, or
/// errc::unavailable where the file cannot be read in the mode that was asked for.
void check_options(dataset const& from, sampler const& order, loader_options const& options, bool together);

}  // namespace muster
