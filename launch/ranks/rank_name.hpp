// Names of ranks in messages.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace muster {

/// Returns "rank 3 on node2 (GPU 1, GPU-3f2a…)", a rank's name in every message. `gpu_index` below 0: it has no GPU. `member`:
/// its number in a run that may start again; below 0: it has none.
std::string name_of_rank(int rank, std::string_view host, int gpu_index, std::string_view gpu, int member = -1);

/// Returns "spare 0 on node2 (GPU 1, GPU-3f2a…)": a process that waits for the place of a lost rank.
std::string name_of_spare(int spare, std::string_view host, int gpu_index = -1, std::string_view gpu = {});

/// Returns "1 rank", "3 ranks".
std::string count_of_ranks(std::size_t count);
std::string count_of_spares(std::size_t count);

/// The most ranks, hosts or nodes that a message names. list_some() returns "a, b, c, d and 60 more nodes" of `count`, even if
/// `names` has only these.
inline constexpr std::size_t most_named = 4;
std::string list_some(std::span<std::string const> names, std::size_t count, std::string_view what);
inline std::string list_some(std::span<std::string const> names, std::string_view what) {
    return list_some(names, names.size(), what);
}

}  // namespace muster
