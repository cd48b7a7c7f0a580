#include "comm/exchange/batch/host_batch.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "comm/backend/keep_forever.hpp"
#include "comm/gradients/adasum.hpp"
#include "comm/tensor/compress.hpp"
#include "comm/tensor/reduction_kernels.hpp"

namespace muster::detail {

namespace {

constexpr std::size_t wire_bytes = 2;  // f16 and bf16

}  // namespace

std::byte* scratch::get(std::size_t bytes) {
    constexpr std::size_t least = std::size_t{64} << 10;
    if (bytes > memory_.bytes()) {
        memory_ = {};
        memory_ = of_.allocate(std::bit_ceil(std::max(bytes, least)));
    }
    return memory_.data();
}

void scratch::leak() noexcept {
    if (memory_) keep_while_ranks_are_late(std::move(memory_));
}

host_batch::host_batch(batch_parts const& with, batch_layout& layout, scratch& first, scratch& second)
    : batch_collectives(with), layout_(layout), first_(first), second_(second) {}

std::byte* host_batch::give_memory(pending_request& unit, group_result* part, std::size_t bytes) {
    auto& memory = part != nullptr ? part->memory : unit.memory;
    memory.reset(new std::byte[bytes]);
    return memory.get();
}

void host_batch::copy(void* to, void const* from, std::size_t bytes) {
    if (bytes != 0) std::memcpy(to, from, bytes);
}

void host_batch::fill(tensor_view const& view) {
    fill_neutral(view.type, batch_.how, view.data, view.count);
}

void host_batch::trace(trace_kind kind, exchange_clock::time_point begin) {
    if (!shared_.trace.running()) return;
    auto const detail = kind == trace_kind::collective ? shared_.trace.intern(to_string(batch_.kind)) : 0;
    shared_.trace.add(
        {kind, shared_.trace.intern(label_), detail, 0, trace_time(begin), trace_time(exchange_clock::now()), batch_.bytes});
}

void host_batch::start_allreduce() {
    std::size_t const count = batch_.bytes / size_of(batch_.type);
    bool const compressed = is_compressed();
    std::byte const* in = compressed ? nullptr : layout_.whole_in;
    std::byte* out = compressed ? nullptr : layout_.whole_out;
    bool const packs = in == nullptr;
    unpacks_ = out == nullptr;
    if (!packs && !unpacks_) counters::add(shared_.count.zero_copy_batches);
    dtype const type = sent_type();
    if (packs || unpacks_) packed_ = first_.get(count * size_of(type));
    if (packs) pack();
    begin_ = exchange_clock::now();
    if (packs) in = packed_;
    if (unpacks_) out = packed_;
    if (batch_.how == reduction::adasum) {
        start_adasum(in, out, count);
        return;
    }
    operation_ = ranks_.allreduce(label_, {const_cast<std::byte*>(in), count, type, batch_.where},
                                  {out, count, type, batch_.where}, batch_.how, compressed ? scaling{} : batch_.scale);
}

/// Finds the residuals of the layout's runs, which are the batch's tensors that have elements.
void host_batch::find_residuals() {
    std::size_t at = 0;
    for (auto const& item : batch_.items) {
        std::size_t const count = count_of(item);
        if (count == 0) continue;
        memory_run& run = layout_.runs[at++];
        if (run.in != nullptr) run.residual = shared_.lost.of(set_, unit_of(item).what.name, spec_of(item).name, count).data();
    }
}

void host_batch::pack() {
    auto const begin = exchange_clock::now();
    if (is_compressed()) {
        pack_compressed();
    } else {
        std::byte* to = packed_;
        for (auto const& run : layout_.runs) {
            if (run.in == nullptr)
                fill_neutral(batch_.type, batch_.how, to, run.bytes / size_of(batch_.type));
            else
                std::memcpy(to, run.in, run.bytes);
            to += run.bytes;
        }
    }
    trace(trace_kind::pack, begin);
}

void host_batch::pack_compressed() {
    static simd const level = best_simd();
    if (batch_.error_feedback) find_residuals();
    std::byte* to = packed_;
    for (auto const& run : layout_.runs) {
        std::size_t const count = run.bytes / sizeof(float);
        if (run.in == nullptr) {
            std::memset(to, 0, count * wire_bytes);  // only sums and averages come here
        } else {
            std::span const lost(run.residual, run.residual != nullptr ? count : 0);
            compress(batch_.wire, {reinterpret_cast<float const*>(run.in), count}, static_cast<float>(batch_.scale.before), lost,
                     to, level);
        }
        to += count * wire_bytes;
    }
}

/// Reduces a single tensor. Blocks: its steps depend on each other.
void host_batch::start_adasum(std::byte const* in, std::byte* out, std::size_t count) {
    tensor_view const to{out, count, batch_.type, batch_.where};
    tensor_view from{const_cast<std::byte*>(in), count, batch_.type, batch_.where};
    if (batch_.scale.before != 1) {
        multiply(batch_.type, in, out, count, batch_.scale.before);
        from = to;
    }
    adasum(ranks_, label_, from, to);
    if (batch_.scale.after != 1) multiply(batch_.type, out, out, count, batch_.scale.after);
}

/// Each rank sends the elements of every share; this rank combines those of its share.
void host_batch::start_uneven_reducescatter(tensor_view const& in, tensor_view const& out, element_range const&) {
    tensor_shape const& shape = spec_of(batch_.items.front()).shape;
    auto const rows = static_cast<std::size_t>(shape.rows()), row = static_cast<std::size_t>(shape.row_elements());
    share_ = out;
    std::vector<std::size_t> send, receive;
    for (int rank = 0; rank < ranks_.size(); ++rank) {
        send.push_back(share_of(rows, ranks_.size(), rank).count * row);
        receive.push_back(share_.count);
    }
    pieces_ = {nullptr, share_.count * static_cast<std::size_t>(ranks_.size()), batch_.type, batch_.where};
    pieces_memory_.reset(new std::byte[std::max<std::size_t>(pieces_.bytes(), 1)]);
    pieces_.data = pieces_memory_.get();
    operation_ = ranks_.alltoall(label_, in, send, pieces_, receive);
}

void host_batch::combine_pieces() {
    std::vector<void const*> sources;
    for (int rank = 0; rank < ranks_.size(); ++rank)
        sources.push_back(static_cast<std::byte const*>(pieces_.data) + static_cast<std::size_t>(rank) * share_.bytes());
    combine(batch_.type, batch_.how, sources, share_.data, share_.count, batch_.scale);
}

void host_batch::leak() noexcept {
    keep_while_ranks_are_late(std::move(pieces_memory_));
    for (auto const& item : batch_.items)
        if (auto const& unit = units_[item.unit]) {
            keep_while_ranks_are_late(std::move(unit->memory));
            for (auto& part : unit->parts) keep_while_ranks_are_late(std::move(part.memory));
        }
}

bool host_batch::advance() {
    if (!operation_.done()) return false;
    trace(trace_kind::collective, begin_);
    if (pieces_.data != nullptr) combine_pieces();
    if (unpacks_) unpack();
    return true;
}

void host_batch::unpack() {
    auto const begin = exchange_clock::now();
    std::byte const* from = packed_;
    if (is_compressed()) {
        static simd const level = best_simd();
        for (auto const& run : layout_.runs) {
            std::size_t const count = run.bytes / sizeof(float);
            if (run.out != nullptr)
                decompress(batch_.wire, from, {reinterpret_cast<float*>(run.out), count}, static_cast<float>(batch_.scale.after),
                           level);
            from += count * wire_bytes;
        }
    } else {
        for (auto const& run : layout_.runs) {
            if (run.out != nullptr) std::memcpy(run.out, from, run.bytes);
            from += run.bytes;
        }
    }
    trace(trace_kind::unpack, begin);
}

}  // namespace muster::detail
