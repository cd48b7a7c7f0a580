#include "comm/hierarchical/node_reduction.hpp"

#include <cstdint>

#include "comm/backend/late_ranks.hpp"
#include "comm/backend/process_set.hpp"
#include "comm/tensor/reduction_kernels.hpp"

namespace muster {

std::vector<node_place> gather_places(collective_backend& world, identity const& who, comm_options const& options) {
    node_place mine{who.node_rank, who.local_rank};
    std::vector<node_place> all(static_cast<std::size_t>(who.world_size));
    auto const bytes = [](node_place* of, std::size_t count) {
        return tensor_view{of, count * sizeof(node_place), dtype::u8, memory_kind::host};
    };
    run_now(world, {collective::kind::allgather, bytes(&mine, 1), bytes(all.data(), all.size())}, options,
            "telling each other the ranks' places");
    return all;
}

identity identity_on_node(identity const& who, node_groups const& groups, std::string_view purpose) {
    identity local = who;
    // Backends count the worlds of a name: the same ranks must have come by it in all of them.
    local.nspace = fmt::format("{}.{:x}.{}", who.nspace, static_cast<std::uint64_t>(fingerprint_of(groups.local)), purpose);
    local.rank = local.local_rank = groups.local_place;
    local.world_size = local.local_size = static_cast<int>(groups.local.size());
    local.node_rank = 0;
    local.node_count = 1;
    return local;
}

collective node_reduction::scatter() const {
    collective next{collective::kind::reducescatter, whole_.in, share(), step()};
    next.scale.before = whole_.scale.before;
    return next;
}

collective node_reduction::across(tensor_view const& share) const {
    return {collective::kind::allreduce, share, share, step()};
}

collective node_reduction::gather() const {
    collective next{collective::kind::allgather, share(), whole_.out};
    auto const size = static_cast<int>(groups_.local.size());
    for (int place = 0; place < size; ++place) next.receive_counts.push_back(range_of(place).count);
    return next;
}

void node_reduction::finish(tensor_view const& share) const noexcept {
    if (whole_.how == reduction::average && !divides_early())
        divide(share.type, share.data, share.count, static_cast<int>(groups_.local.size() * groups_.across.size()));
    if (whole_.scale.after != 1) multiply(share.type, share.data, share.data, share.count, whole_.scale.after);
}

}  // namespace muster
