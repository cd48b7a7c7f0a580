// One rank as the launcher sees it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "launch/placement/binding.hpp"
#include "launch/ranks/rank_stream.hpp"
#include "pmix/identity.hpp"

namespace muster {

struct rank_process {
    identity who;
    binding place;
    pid_t pid = -1;
    std::optional<int> wait_status{};  ///< set once it has ended
    bool connected = false;            ///< initialised PMIx or PMI
    bool finalized = false;
    bool group_gone = false;    ///< nobody is left in its process group
    bool spoke = false;         ///< has written something
    std::string mpi_library{};  ///< the MPI library seen in its memory map, if it was looked at
    rank_stream out;
    rank_stream err;

    bool running() const noexcept { return pid > 0 && !wait_status; }
};

/// "rank 3 on node2 (GPU 1, GPU-3f2a…)": how every message names a rank.
std::string name_of(rank_process const& rank);
/// The same from its parts; `gpu_index` below 0: it has none.
std::string name_of_rank(int rank, std::string_view host, int gpu_index, std::string_view gpu);

/// "exited with code 3", "was killed by signal 9 (SIGKILL)".
std::string describe_end(int wait_status);

/// The exit code that a shell would give: the code, or 128 + the signal.
int shell_code(int wait_status) noexcept;

}  // namespace muster
