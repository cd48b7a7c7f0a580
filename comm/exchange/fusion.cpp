#include "comm/exchange/fusion.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace muster {

namespace {

/// From here on two copies of a tensor cost more than a collective of its own.
constexpr std::size_t uncopied_bytes = std::size_t{256} << 10;

struct placed_item {
    std::uint64_t place = 0;
    fusion_item item;
    std::size_t bytes = 0;
};

/// Tensors that may share a collective.
struct family {
    fused_batch like;
    std::vector<placed_item> items;
};

using family_key = std::tuple<exchange_reduction, double, double, dtype>;

std::size_t bytes_of(tensor_spec const& spec) {
    return static_cast<std::size_t>(spec.shape.elements()) * size_of(spec.type);
}

fused_batch batch_like(agreement const& one) {
    fused_batch batch;
    batch.kind = one.what.kind;
    batch.how = one.what.how;
    batch.scale = one.what.scale;
    return batch;
}

/// What lies gap-free in memory needs no copies to travel together.
bool adjoin(placed_item const& a, placed_item const& b) {
    return a.place != 0 && a.place + a.bytes == b.place;
}

void cut(fused_batch const& like, std::span<placed_item const> items, std::size_t fusion_bytes, std::vector<fused_batch>& into) {
    fused_batch next = like;
    for (auto const& each : items) {
        if (!next.items.empty() && next.bytes + each.bytes > fusion_bytes) {
            into.push_back(std::move(next));
            next = like;
        }
        next.items.push_back(each.item);
        next.bytes += each.bytes;
    }
    if (!next.items.empty()) into.push_back(std::move(next));
}

/// Long stretches of memory go as they lie; what is left between them is gathered.
void cut(family& from, std::size_t fusion_bytes, std::vector<fused_batch>& into) {
    auto& items = from.items;
    std::stable_sort(items.begin(), items.end(), [](placed_item const& a, placed_item const& b) { return a.place < b.place; });
    std::vector<placed_item> gathered;
    for (std::size_t first = 0, last = 0; first < items.size(); first = last) {
        std::size_t bytes = items[first].bytes;
        for (last = first + 1; last < items.size() && adjoin(items[last - 1], items[last]); ++last) bytes += items[last].bytes;
        std::span const stretch(items.data() + first, last - first);
        if (bytes >= uncopied_bytes)
            cut(from.like, stretch, fusion_bytes, into);
        else
            gathered.insert(gathered.end(), stretch.begin(), stretch.end());
    }
    cut(from.like, gathered, fusion_bytes, into);
}

}  // namespace

std::vector<fused_batch> plan_batches(std::span<std::shared_ptr<agreement const> const> ready, std::size_t fusion_bytes) {
    std::vector<family> families;  // in the order of their first agreement; others than allreduce are families of one
    std::map<family_key, std::size_t> known;
    for (std::size_t unit = 0; unit < ready.size(); ++unit) {
        agreement const& one = *ready[unit];
        if (!one.fault.empty()) continue;
        std::size_t const tensors = std::max<std::size_t>(one.what.tensors.size(), 1);
        for (std::size_t tensor = 0; tensor < tensors; ++tensor) {
            fused_batch like = batch_like(one);
            std::size_t bytes = 0;
            bool fusable = false;
            if (tensor < one.what.tensors.size()) {
                tensor_spec const& spec = one.what.tensors[tensor];
                like.type = spec.type;
                like.where = spec.where;
                bytes = bytes_of(spec);
                fusable = one.what.kind == exchange_kind::allreduce && one.what.how != exchange_reduction::adasum &&
                          spec.where == memory_kind::host;
            }
            std::size_t at = families.size();
            if (fusable) at = known.try_emplace({like.how, like.scale.before, like.scale.after, like.type}, at).first->second;
            if (at == families.size()) families.push_back({std::move(like), {}});
            std::uint64_t const place = tensor < one.what.places.size() ? one.what.places[tensor] : 0;
            families[at].items.push_back({place, {unit, tensor}, bytes});
        }
    }
    std::vector<fused_batch> batches;
    for (auto& each : families) cut(each, fusion_bytes, batches);
    return batches;
}

}  // namespace muster
