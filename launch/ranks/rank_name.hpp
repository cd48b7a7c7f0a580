// Names of ranks in messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

/// "rank 3 on node2 (GPU 1, GPU-3f2a…)": how every message names a rank. `gpu_index` below 0: it has no GPU.
std::string name_of_rank(int rank, std::string_view host, int gpu_index, std::string_view gpu);

/// "1 rank", "3 ranks".
std::string count_of_ranks(std::size_t count);

}  // namespace muster
