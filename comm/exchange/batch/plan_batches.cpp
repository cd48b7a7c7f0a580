#include "comm/exchange/batch/plan_batches.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>
#include <type_traits>

#include "comm/tensor/reduction_kernels.hpp"

namespace muster::detail {

namespace {

bool overlap(std::byte const* a, std::byte const* b, std::size_t bytes) {
    return a < b + bytes && b < a + bytes;
}

/// Memory is gap-free as long as each piece begins where the one before ends.
template <typename Byte>
class gap_free_memory {
  public:
    void add(Byte* at, std::size_t bytes) {
        if (first_ == nullptr) first_ = next_ = at;
        broken_ = broken_ || at == nullptr || at != next_;
        next_ = at + bytes;
    }
    Byte* whole() const { return broken_ ? nullptr : first_; }

  private:
    Byte* first_ = nullptr;
    Byte* next_ = nullptr;
    bool broken_ = false;
};

}  // namespace

void lay_out(fused_batch const& batch, std::span<std::shared_ptr<agreement const> const> agreed,
             std::span<pending_ptr const> units, bool apart, batch_layout& into) {
    into.runs.clear();
    gap_free_memory<std::byte const> inputs;
    gap_free_memory<std::byte> outputs;
    for (auto const& item : batch.items) {
        memory_run next;
        if (pending_request const* const unit = units[item.unit].get()) {
            tensor_io const& io = unit->tensors()[item.tensor];
            next = {static_cast<std::byte const*>(io.in.data), static_cast<std::byte*>(io.out.data), io.in.bytes()};
        } else {
            next.bytes =
                static_cast<std::size_t>(agreed[item.unit]->what.tensors[item.tensor].shape.elements()) * size_of(batch.type);
        }
        if (next.bytes == 0) continue;
        inputs.add(next.in, next.bytes);
        outputs.add(next.out, next.bytes);
        if (!apart && !into.runs.empty() && next.in != nullptr) {
            memory_run& before = into.runs.back();
            if (before.in != nullptr && before.in + before.bytes == next.in && before.out + before.bytes == next.out) {
                before.bytes += next.bytes;
                continue;
            }
        }
        into.runs.push_back(next);
    }
    into.whole_in = inputs.whole();
    into.whole_out = outputs.whole();
    // Input and output of a collective must not overlap partly.
    if (into.whole_in != nullptr && into.whole_out != nullptr && into.whole_in != into.whole_out &&
        overlap(into.whole_in, into.whole_out, batch.bytes))
        into.whole_out = nullptr;
}

namespace {

template <typename T>
T neutral(reduction how) {
    using number = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
    using limits = std::numeric_limits<number>;
    switch (how) {
        case reduction::product: return T(number{1});
        case reduction::min: return T(limits::has_infinity ? limits::infinity() : limits::max());
        case reduction::max: return T(limits::has_infinity ? -limits::infinity() : limits::lowest());
        default: return T{};
    }
}

}  // namespace

void fill_neutral(dtype type, reduction how, void* to, std::size_t count) {
    if (is_only_moved(type)) {
        std::memset(to, 0, count * size_of(type));
        return;
    }
    with_dtype(type, [&]<typename T>() { std::fill_n(static_cast<T*>(to), count, neutral<T>(how)); });
}

}  // namespace muster::detail

namespace muster {

namespace {

/// Two copies of a tensor of this size or more cost more than a separate collective.
constexpr std::size_t uncopied_bytes = std::size_t{256} << 10;

/// The same in device memory, where a separate collective costs some 10 us of latency, in which a GPU copies about this much
/// twice (computed with 3 TB/s, not measured).
constexpr std::size_t uncopied_bytes_on_device = std::size_t{4} << 20;

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

using family_key = std::tuple<reduction, double, double, compression, bool, dtype, memory_kind>;

family_key key_of(fused_batch const& like) {
    return {like.how, like.scale.before, like.scale.after, like.wire, like.error_feedback, like.type, like.where};
}

std::size_t bytes_of(tensor_spec const& spec) {
    return static_cast<std::size_t>(spec.shape.elements()) * size_of(spec.type);
}

fused_batch batch_like(agreement const& one, std::size_t tensor) {
    fused_batch batch;
    batch.kind = one.what.kind;
    batch.how = one.what.how;
    batch.scale = one.what.scale;
    if (tensor >= one.what.tensors.size()) return batch;
    tensor_spec const& spec = one.what.tensors[tensor];
    batch.type = spec.type;
    batch.where = spec.where;
    if (spec.type != dtype::f32) return batch;
    batch.wire = one.what.wire;
    batch.error_feedback = one.what.error_feedback;
    return batch;
}

bool is_fusable(agreement const& one, std::size_t tensor) {
    return one.what.kind == exchange_kind::allreduce && one.what.how != reduction::adasum && tensor < one.what.tensors.size();
}

/// Returns whether two tensors belong to the same family, without a look at the families.
bool is_alike(agreement const& a, std::size_t i, agreement const& b, std::size_t k) {
    tensor_spec const& first = a.what.tensors[i];
    tensor_spec const& second = b.what.tensors[k];
    return first.type == second.type && first.where == second.where && a.what.how == b.what.how && a.what.scale == b.what.scale &&
           a.what.wire == b.what.wire && a.what.error_feedback == b.what.error_feedback;
}

/// Returns whether `b` follows `a` without a gap, so that they travel together without copies.
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

/// Long stretches of memory are sent from where they lie; the tensors between them are gathered.
void cut(family& from, std::size_t fusion_bytes, std::vector<fused_batch>& into) {
    auto& items = from.items;
    auto const lies_before = [](placed_item const& a, placed_item const& b) { return a.place < b.place; };
    // A backward pass submits them from the last to the first.
    auto const ascends = [](placed_item const& a, placed_item const& b) { return a.place <= b.place; };
    if (std::adjacent_find(items.begin(), items.end(), ascends) == items.end()) std::reverse(items.begin(), items.end());
    if (!std::is_sorted(items.begin(), items.end(), lies_before)) std::stable_sort(items.begin(), items.end(), lies_before);
    std::size_t const uncopied = from.like.where == memory_kind::host ? uncopied_bytes : uncopied_bytes_on_device;
    std::vector<placed_item> gathered;
    for (std::size_t first = 0, last = 0; first < items.size(); first = last) {
        std::size_t bytes = items[first].bytes;
        for (last = first + 1; last < items.size() && adjoin(items[last - 1], items[last]); ++last) bytes += items[last].bytes;
        std::span const stretch(items.data() + first, last - first);
        if (bytes >= uncopied && from.like.wire == compression::none)
            cut(from.like, stretch, fusion_bytes, into);
        else
            gathered.insert(gathered.end(), stretch.begin(), stretch.end());
    }
    cut(from.like, gathered, fusion_bytes, into);
}

}  // namespace

std::vector<fused_batch> plan_batches(std::span<std::shared_ptr<agreement const> const> ready, std::size_t fusion_bytes) {
    std::vector<family> families;  // in the order of their first agreement; anything except allreduce is a family of one
    std::map<family_key, std::size_t> known;
    fusion_item last{};  // last one fused, into family last_family
    std::size_t last_family = ~std::size_t{0};
    for (std::size_t unit = 0; unit < ready.size(); ++unit) {
        agreement const& one = *ready[unit];
        if (!one.fault.empty()) continue;
        std::size_t const tensors = std::max<std::size_t>(one.what.tensors.size(), 1);
        for (std::size_t tensor = 0; tensor < tensors; ++tensor) {
            bool const fusable = is_fusable(one, tensor);
            std::size_t at = families.size();
            if (fusable && last_family != ~std::size_t{0} && is_alike(one, tensor, *ready[last.unit], last.tensor)) {
                at = last_family;
            } else {
                fused_batch like = batch_like(one, tensor);
                if (fusable) at = known.try_emplace(key_of(like), at).first->second;
                if (at == families.size()) families.push_back({std::move(like), {}});
            }
            if (fusable) {
                last = {unit, tensor};
                last_family = at;
            }
            std::size_t const bytes = tensor < one.what.tensors.size() ? bytes_of(one.what.tensors[tensor]) : 0;
            std::uint64_t const place = tensor < one.what.places.size() ? one.what.places[tensor] : 0;
            families[at].items.push_back({place, {unit, tensor}, bytes});
        }
    }
    std::vector<fused_batch> batches;
    for (auto& each : families) cut(each, fusion_bytes, batches);
    return batches;
}

}  // namespace muster
