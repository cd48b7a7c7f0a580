#include "pmix/server/server_job.hpp"

#include <algorithm>
#include <numeric>

namespace muster::pmix {

std::vector<job_node> nodes_of(job const& description) {
    if (!description.nodes.empty()) return description.nodes;
    std::vector<int> all(static_cast<std::size_t>(description.world_size < 0 ? 0 : description.world_size));
    std::iota(all.begin(), all.end(), 0);
    return {{description.host, all}};
}

std::vector<int> local_ranks_of(job const& description) {
    return nodes_of(description).at(static_cast<std::size_t>(description.node)).ranks;
}

int local_size_of(job const& description) noexcept {
    if (description.nodes.empty()) return description.world_size;
    return static_cast<int>(description.nodes[static_cast<std::size_t>(description.node)].ranks.size());
}

int local_rank_of(job const& description, int rank) noexcept {
    if (description.nodes.empty()) return rank;
    auto const& here = description.nodes[static_cast<std::size_t>(description.node)].ranks;
    return static_cast<int>(std::find(here.begin(), here.end(), rank) - here.begin());
}

}  // namespace muster::pmix
