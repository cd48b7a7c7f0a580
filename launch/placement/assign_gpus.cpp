#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "launch/placement/binding_steps.hpp"

namespace muster {

namespace {

std::string note_of(topology const& t) {
    return t.gpu_note.empty() ? "" : fmt::format(" ({})", t.gpu_note);
}

void check_enough(topology const& t, placement_request const& wanted, int local_size) {
    auto const gpus = static_cast<int>(t.gpus.size());
    if (local_size <= gpus * wanted.ranks_per_gpu) return;
    throw error(errc::placement,
                fmt::format("cannot bind {} ranks on {}: it has {} GPUs for {} rank(s) each{}; use -n {}, or --ranks-per-gpu {}",
                            local_size, t.host, gpus, wanted.ranks_per_gpu, note_of(t), gpus * wanted.ranks_per_gpu,
                            (local_size + gpus - 1) / gpus));
}

/// The GPU that a map means by `number`: its index, or its place in the list where indices are those of MIG slices' GPUs.
gpu const* find_mapped(topology const& t, int number) {
    bool const slices = std::any_of(t.gpus.begin(), t.gpus.end(), [](gpu const& g) { return g.mig.has_value(); });
    for (std::size_t i = 0; i < t.gpus.size(); ++i)
        if ((slices ? static_cast<int>(i) : t.gpus[i].index) == number) return &t.gpus[i];
    return nullptr;
}

void assign_by_map(topology const& t, placement_request const& wanted, std::vector<binding>& ranks) {
    if (ranks.size() > wanted.gpu_map.size())
        throw error(errc::placement, fmt::format("cannot bind {} ranks on {}: the GPU map has {} entries; give one for each rank",
                                                 ranks.size(), t.host, wanted.gpu_map.size()));
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        auto const* const found = find_mapped(t, wanted.gpu_map[r]);
        if (found == nullptr)
            throw error(errc::placement,
                        fmt::format("cannot bind local rank {} on {} to GPU {}: there are {} GPUs here{}; correct the GPU map", r,
                                    t.host, wanted.gpu_map[r], t.gpus.size(), note_of(t)));
        auto const before = std::count_if(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(r),
                                          [&](binding const& b) { return b.device == *found; });
        if (before >= wanted.ranks_per_gpu && !wanted.slots_per_node)
            throw error(
                errc::placement,
                fmt::format(
                    "cannot bind local rank {} on {}: the GPU map gives GPU {} to more than {} rank(s); correct the map, or "
                    "give --ranks-per-gpu {}",
                    r, t.host, wanted.gpu_map[r], wanted.ranks_per_gpu, before + 1));
        ranks[r].device = *found;
    }
}

}  // namespace

void assign_gpus(topology const& t, placement_request const& wanted, std::vector<binding>& ranks) {
    if (t.gpus.empty()) {
        if (!wanted.gpu_map.empty())
            throw error(errc::placement,
                        fmt::format("there is a GPU map, but {} has no GPU{}; leave the map out", t.host, note_of(t)));
        return;
    }
    auto const gpus = t.gpus.size();
    if (!wanted.gpu_map.empty()) {
        assign_by_map(t, wanted, ranks);
    } else {
        if (!wanted.slots_per_node) check_enough(t, wanted, static_cast<int>(ranks.size()));
        for (std::size_t r = 0; r < ranks.size(); ++r)
            ranks[r].device =
                wanted.slots_per_node ? t.gpus[r % gpus] : t.gpus[r / static_cast<std::size_t>(wanted.ranks_per_gpu)];
    }
}

void assign_visible(topology const& t, placement_request const& wanted, std::vector<binding>& ranks) {
    for (auto& rank : ranks) {
        if (!rank.device) continue;
        auto const& own = *rank.device;
        auto const others = std::count_if(ranks.begin(), ranks.end(), [&](binding const& b) { return b.device == own; }) - 1;
        if (others > 0)
            explain(rank, fmt::format("shares its GPU with {} ({})", counted(static_cast<std::size_t>(others), "other rank"),
                                      wanted.slots_per_node ? fmt::format("--slots-per-node {}", *wanted.slots_per_node)
                                                            : fmt::format("--ranks-per-gpu {}", wanted.ranks_per_gpu)));
        if (!wanted.gpu_map.empty()) explain(rank, "GPU by the map");
        if (own.mig || wanted.gpus_seen == gpu_visibility::own) {
            rank.visible_devices = visible_name(own);
            if (own.mig) explain(rank, "a process sees one MIG slice only: its own");
            continue;
        }
        std::string visible;
        int position = 0, count = 0;
        if (wanted.gpus_seen == gpu_visibility::own_first) {
            visible = visible_name(own);
            ++count;
        }
        for (auto const& g : t.gpus) {
            if (g.mig || (wanted.gpus_seen == gpu_visibility::own_first && g == own)) continue;
            if (g == own) position = count;
            visible += (count++ == 0 ? "" : ",") + visible_name(g);
        }
        rank.device_index = position;
        // What only the scheduler knows stays as the scheduler said it.
        if (own.known_to_driver || wanted.lists_gpus || wanted.gpus_seen == gpu_visibility::own_first)
            rank.visible_devices = visible;
    }
}

}  // namespace muster
