#include "bench/training/rank_places.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "bench/tools/machine.hpp"

namespace muster {

std::vector<rank_location> places_of_ranks(communicator& ranks) {
    constexpr std::size_t width = 128;
    std::array<std::uint8_t, width> mine{};
    auto const cores = allowed_cores();
    std::memcpy(mine.data(), cores.data(), std::min(cores.size(), width - 1));
    std::vector<std::uint8_t> all(width * static_cast<std::size_t>(ranks.size()));
    ranks.allgather("cores", view_of(std::span(mine)), view_of(std::span(all))).wait();
    std::vector<rank_location> out;
    for (int r = 0; r < ranks.size(); ++r)
        out.push_back({r, ranks.host_of(r), reinterpret_cast<char const*>(all.data()) + width * static_cast<std::size_t>(r)});
    return out;
}

}  // namespace muster
