#include "comm/gradients/compressed_allreduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "comm/backend/argument_checks.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/tensor/reduction_kernels.hpp"

namespace muster {

namespace {

/// Large enough that messages cost little, small enough that conversion of one hides behind another's way.
constexpr std::size_t segment_elements = std::size_t{1} << 21;

/// Converted at once, in the first-level cache.
constexpr std::size_t block = 1024;

/// Elements between two looks at what is under way.
constexpr std::size_t stretch = 64 * block;

constexpr std::size_t wire_bytes = 2;

void round_to(compression how, float const* from, void* to, std::size_t count, simd level) noexcept {
    if (how == compression::f16)
        from_float(from, static_cast<half*>(to), count, level);
    else
        from_float(from, static_cast<bfloat16*>(to), count, level);
}

void widen(compression how, void const* from, float* to, std::size_t count, simd level) noexcept {
    if (how == compression::f16)
        to_float(static_cast<half const*>(from), to, count, level);
    else
        to_float(static_cast<bfloat16 const*>(from), to, count, level);
}

std::byte* at(void* wire, std::size_t element) noexcept {
    return static_cast<std::byte*>(wire) + element * wire_bytes;
}

}  // namespace

void compress(compression how, std::span<float const> values, float factor, std::span<float> residual, void* wire,
              simd level) noexcept {
    if (residual.empty() && factor == 1) return round_to(how, values.data(), wire, values.size(), level);
    alignas(64) std::array<float, block> exact, rounded;
    for (std::size_t first = 0; first < values.size(); first += block) {
        std::size_t const n = std::min(block, values.size() - first);
        float const* const from = values.data() + first;
        float* const lost = residual.empty() ? nullptr : residual.data() + first;
        for (std::size_t i = 0; i < n; ++i) exact[i] = from[i] * factor;
        if (lost != nullptr)
            for (std::size_t i = 0; i < n; ++i) exact[i] += lost[i];
        round_to(how, exact.data(), at(wire, first), n, level);
        if (lost == nullptr) continue;
        widen(how, at(wire, first), rounded.data(), n, level);
        for (std::size_t i = 0; i < n; ++i) {
            bool const finite = rounded[i] - rounded[i] == 0;
            lost[i] = finite ? exact[i] - rounded[i] : 0.0f;
        }
    }
}

void decompress(compression how, void const* wire, std::span<float> values, float factor, simd level) noexcept {
    if (factor == 1) return widen(how, wire, values.data(), values.size(), level);
    for (std::size_t first = 0; first < values.size(); first += block) {
        auto const some = values.subspan(first, std::min(block, values.size() - first));
        widen(how, static_cast<std::byte const*>(wire) + first * wire_bytes, some.data(), some.size(), level);
        for (float& each : some) each *= factor;
    }
}

/// A piece of the tensor on its way.
struct compressed_allreduce::segment {
    std::string_view name;
    float const* in = nullptr;
    float* out = nullptr;
    std::size_t count = 0;
    reduction how = reduction::sum;
    scaling scale;
    float* sent_residual = nullptr;     // of all elements of the segment
    float* reduced_residual = nullptr;  // of this rank's share of it

    std::vector<std::size_t> shares;          // of every rank
    std::unique_ptr<std::byte[]> wire;        // the segment as it is sent, then as it comes back
    std::unique_ptr<std::byte[]> others;      // every rank's version of this rank's share
    std::unique_ptr<std::byte[]> own_result;  // this rank's share, reduced
    std::size_t wire_capacity = 0, others_capacity = 0, own_capacity = 0;
    operation under_way;
};

namespace {

std::byte* grown(std::unique_ptr<std::byte[]>& memory, std::size_t& capacity, std::size_t bytes) {
    if (bytes > capacity) {
        memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
        capacity = bytes;
    }
    return memory.get();
}

}  // namespace

compressed_allreduce::compressed_allreduce(communicator& ranks, compression wire, bool error_feedback)
    : ranks_(&ranks), wire_(wire), error_feedback_(error_feedback) {}

compressed_allreduce::~compressed_allreduce() = default;

void compressed_allreduce::forget(std::string_view name) {
    if (auto const found = residuals_.find(name); found != residuals_.end()) residuals_.erase(found);
}

void compressed_allreduce::check(std::string_view name, tensor_view const& in, tensor_view const& out, reduction how,
                                 scaling const& scale) const {
    auto const refuse = [&](std::string const& why) {
        throw comm_error(errc::usage, fmt::format("allreduce of \"{}\" in {} (rank {} of {} on {}): {}", name, to_string(wire_),
                                                  ranks_->rank(), ranks_->size(), ranks_->who().host, why));
    };
    for (auto const* view : {&in, &out})
        if (view->type != dtype::f32 || view->where != memory_kind::host)
            refuse(fmt::format("only f32 tensors in host memory are compressed, this one is {} in {} memory; reduce it without",
                               to_string(view->type), to_string(view->where)));
    if (error_feedback_ && how != reduction::sum && how != reduction::average)
        refuse(fmt::format("error feedback is for sums and averages, not for {}; make one without it", to_string(how)));
    if (auto const fault =
            detail::fault_of({collective::kind::allreduce, in, out, how, 0, scale}, {ranks_->rank(), ranks_->size()});
        !fault.empty())
        refuse(fault);
}

compressed_allreduce::residuals* compressed_allreduce::residuals_of(std::string_view name, std::size_t count) {
    if (!error_feedback_) return nullptr;
    auto found = residuals_.find(name);
    if (found == residuals_.end()) {
        found = residuals_.emplace(std::string(name), residuals{}).first;
        found->second.sent.assign(count, 0.0f);
        // Each segment has a share of its own.
        std::size_t reduced = 0;
        for (std::size_t first = 0; first < count; first += segment_elements)
            reduced += share_of(std::min(segment_elements, count - first), ranks_->size(), ranks_->rank()).count;
        found->second.reduced.assign(reduced, 0.0f);
    }
    if (found->second.sent.size() != count)
        throw comm_error(errc::usage,
                         fmt::format("allreduce of \"{}\" in {} (rank {} of {} on {}): it has {} elements and had {} "
                                     "before; give another name, or forget() this one on all ranks",
                                     name, to_string(wire_), ranks_->rank(), ranks_->size(), ranks_->who().host, count,
                                     found->second.sent.size()));
    return &found->second;
}

/// Rounds the segment and sends each rank its share of it.
void compressed_allreduce::send(segment& next) {
    auto const ranks = static_cast<std::size_t>(ranks_->size());
    next.shares.clear();
    for (int rank = 0; rank < ranks_->size(); ++rank) next.shares.push_back(share_of(next.count, ranks_->size(), rank).count);
    std::size_t const own = next.shares[static_cast<std::size_t>(ranks_->rank())];
    auto* const wire = grown(next.wire, next.wire_capacity, next.count * wire_bytes);
    auto* const others = grown(next.others, next.others_capacity, own * ranks * wire_bytes);
    auto const factor = static_cast<float>(next.scale.before);
    for (std::size_t first = 0; first < next.count; first += stretch) {
        std::size_t const n = std::min(stretch, next.count - first);
        std::span<float> const residual =
            next.sent_residual != nullptr ? std::span(next.sent_residual + first, n) : std::span<float>{};
        compress(wire_, {next.in + first, n}, factor, residual, at(wire, first), level_);
        ranks_->progress();
    }
    dtype const type = wire_ == compression::f16 ? dtype::f16 : dtype::bf16;
    std::vector<std::size_t> const from_each(ranks, own);
    next.under_way = ranks_->alltoall(next.name, {wire, next.count, type}, next.shares, {others, own * ranks, type}, from_each);
}

/// A part of this rank's share, of `own` elements.
void compressed_allreduce::reduce_stretch(segment const& of, std::size_t own, element_range const& part, void* result) const {
    auto const ranks = static_cast<std::size_t>(ranks_->size());
    std::vector<void const*> sources(ranks);
    scaling const after{1, of.scale.after};
    if (of.reduced_residual == nullptr) {
        for (std::size_t rank = 0; rank < ranks; ++rank) sources[rank] = at(of.others.get(), rank * own + part.first);
        return combine(wire_ == compression::f16 ? dtype::f16 : dtype::bf16, of.how, sources, result, part.count, level_, after);
    }
    std::vector<float> widened(ranks * block);
    alignas(64) std::array<float, block> reduced;
    for (std::size_t first = 0; first < part.count; first += block) {
        std::size_t const n = std::min(block, part.count - first);
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            widen(wire_, at(of.others.get(), rank * own + part.first + first), widened.data() + rank * block, n, level_);
            sources[rank] = widened.data() + rank * block;
        }
        combine(dtype::f32, of.how, sources, reduced.data(), n, level_, after);
        compress(wire_, {reduced.data(), n}, 1.0f, {of.reduced_residual + part.first + first, n}, at(result, first), level_);
    }
}

/// Reduces this rank's share in f32, rounds it and sends it to all.
void compressed_allreduce::reduce(segment& of) {
    of.under_way.wait();
    std::size_t const own = of.shares[static_cast<std::size_t>(ranks_->rank())];
    auto* const result = grown(of.own_result, of.own_capacity, own * wire_bytes);
    for (std::size_t first = 0; first < own; first += stretch) {
        reduce_stretch(of, own, {first, std::min(stretch, own - first)}, at(result, first));
        ranks_->progress();
    }
    dtype const type = wire_ == compression::f16 ? dtype::f16 : dtype::bf16;
    of.under_way = ranks_->allgather(of.name, {result, own, type}, {of.wire.get(), of.count, type}, of.shares);
}

void compressed_allreduce::receive(segment& of) {
    of.under_way.wait();
    for (std::size_t first = 0; first < of.count; first += stretch) {
        std::size_t const n = std::min(stretch, of.count - first);
        decompress(wire_, at(of.wire.get(), first), {of.out + first, n}, 1.0f, level_);
        ranks_->progress();
    }
}

void compressed_allreduce::run(std::string_view name, tensor_view in, tensor_view out, reduction how, scaling const& scale) {
    if (wire_ == compression::none || ranks_->size() == 1) return ranks_->allreduce(name, in, out, how, scale).wait();
    check(name, in, out, how, scale);
    if (!window_) window_ = std::make_unique<segments>();
    try {
        run_segments(name, in, out, how, scale);
    } catch (...) {
        for (auto& each : *window_) each.under_way = {};
        // A late rank may still cause writes to this memory: it is given up together with the communicator.
        static_cast<void>(window_.release());
        throw;
    }
}

/// Three segments at a time, each a step further than the next: the order of the collectives is the same on all ranks.
void compressed_allreduce::run_segments(std::string_view name, tensor_view in, tensor_view out, reduction how,
                                        scaling const& scale) {
    residuals* const kept = residuals_of(name, in.count);
    float* sent = kept != nullptr ? kept->sent.data() : nullptr;
    float* reduced = kept != nullptr ? kept->reduced.data() : nullptr;
    auto& window = *window_;
    std::size_t const count = (in.count + segment_elements - 1) / segment_elements;
    for (std::size_t step = 0; step < count + 2; ++step) {
        if (step < count) {
            segment& next = window[step % window.size()];
            std::size_t const first = step * segment_elements;
            next.name = name;
            next.in = static_cast<float const*>(in.data) + first;
            next.out = static_cast<float*>(out.data) + first;
            next.count = std::min(segment_elements, in.count - first);
            next.how = how;
            next.scale = scale;
            next.sent_residual = sent != nullptr ? sent + first : nullptr;
            next.reduced_residual = reduced;
            if (reduced != nullptr) reduced += share_of(next.count, ranks_->size(), ranks_->rank()).count;
            send(next);
        }
        if (step >= 1 && step - 1 < count) reduce(window[(step - 1) % window.size()]);
        if (step >= 2) receive(window[(step - 2) % window.size()]);
    }
}

}  // namespace muster
