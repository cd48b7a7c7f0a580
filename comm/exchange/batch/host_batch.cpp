#include "comm/exchange/batch/host_batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <new>

#include "comm/backend/comm_error.hpp"
#include "comm/exchange/batch/batch_counts.hpp"
#include "comm/gradients/adasum.hpp"
#include "comm/gradients/compressed_allreduce.hpp"
#include "comm/tensor/reduction_kernels.hpp"

namespace muster::detail {

std::byte* scratch::get(std::size_t bytes) {
    constexpr std::size_t least = std::size_t{64} << 10;
    if (bytes > memory_.bytes()) {
        memory_ = {};
        memory_ = of_.allocate(std::bit_ceil(std::max(bytes, least)));
    }
    return memory_.data();
}

void scratch::leak() noexcept {
    static_cast<void>(new (std::nothrow) comm_buffer(std::move(memory_)));
}

namespace {

constexpr std::size_t wire_bytes = 2;  // f16 and bf16

template <typename T>
void fill(void* to, std::size_t count, T value) {
    std::fill_n(static_cast<T*>(to), count, value);
}

template <typename T>
void fill_type(exchange_reduction how, void* to, std::size_t count) {
    using limits = std::numeric_limits<T>;
    T value{};
    if (how == exchange_reduction::product) value = T{1};
    if (how == exchange_reduction::min) value = limits::has_infinity ? limits::infinity() : limits::max();
    if (how == exchange_reduction::max) value = limits::has_infinity ? -limits::infinity() : limits::lowest();
    fill(to, count, value);
}

/// f16 and bf16 by their bits: zero, one, plus and minus infinity.
void fill_bits(exchange_reduction how, void* to, std::size_t count, std::uint16_t one, std::uint16_t infinity) {
    std::uint16_t value = 0;
    if (how == exchange_reduction::product) value = one;
    if (how == exchange_reduction::min) value = infinity;
    if (how == exchange_reduction::max) value = static_cast<std::uint16_t>(infinity | 0x8000u);
    fill(to, count, value);
}

}  // namespace

void fill_neutral(dtype type, exchange_reduction how, void* to, std::size_t count) {
    switch (type) {
        case dtype::f32: return fill_type<float>(how, to, count);
        case dtype::f64: return fill_type<double>(how, to, count);
        case dtype::f16: return fill_bits(how, to, count, 0x3c00, 0x7c00);
        case dtype::bf16: return fill_bits(how, to, count, 0x3f80, 0x7f80);
        case dtype::i32: return fill_type<std::int32_t>(how, to, count);
        case dtype::i64: return fill_type<std::int64_t>(how, to, count);
        case dtype::u8: return fill_type<std::uint8_t>(how, to, count);
        case dtype::i8: return fill_type<std::int8_t>(how, to, count);
    }
}

batch_run::batch_run(run_parts const& with, fused_batch const& batch, batch_layout& layout,
                     std::span<std::shared_ptr<agreement const> const> agreed, std::span<pending_ptr const> units)
    : set_(with.set),
      ranks_(with.ranks),
      shared_(with.shared),
      first_(with.first),
      second_(with.second),
      batch_(batch),
      layout_(layout),
      agreed_(agreed),
      units_(units) {
    std::string const& name = unit_of(batch.items.front()).what.name;
    label_ = batch.items.size() == 1 ? name : fmt::format("{} (+{})", name, batch.items.size() - 1);
}

std::size_t batch_run::bytes_of(fusion_item const& item) const {
    return static_cast<std::size_t>(spec_of(item).shape.elements()) * size_of(batch_.type);
}

tensor_io const* batch_run::io_of(fusion_item const& item) const {
    auto const& unit = units_[item.unit];
    return unit ? &unit->tensors()[item.tensor] : nullptr;
}

void batch_run::start() {
    begin_ = exchange_clock::now();
    switch (batch_.kind) {
        case exchange_kind::allreduce: start_allreduce(); break;
        case exchange_kind::broadcast: start_broadcast(); break;
        case exchange_kind::allgather: start_allgather(); break;
        case exchange_kind::reducescatter: start_reducescatter(); break;
        case exchange_kind::alltoall: start_alltoall(); break;
        default: break;
    }
}

void batch_run::start_allreduce() {
    std::size_t const count = batch_.bytes / size_of(batch_.type);
    bool const compressed = is_compressed();
    std::byte const* in = compressed ? nullptr : layout_.whole_in;
    std::byte* out = compressed ? nullptr : layout_.whole_out;
    bool const packs = in == nullptr;
    unpacks_ = out == nullptr;
    if (!packs && !unpacks_) counters::add(shared_.count.zero_copy_batches);
    dtype const wire = !compressed ? batch_.type : batch_.wire == compression::f16 ? dtype::f16 : dtype::bf16;
    if (packs || unpacks_) packed_ = first_.get(count * size_of(wire));
    if (packs) pack();
    begin_ = exchange_clock::now();
    if (packs) in = packed_;
    if (unpacks_) out = packed_;
    if (batch_.how == exchange_reduction::adasum) {
        start_adasum(in, out, count);
        return;
    }
    operation_ =
        ranks_.allreduce(label_, {const_cast<std::byte*>(in), count, wire, batch_.where}, {out, count, wire, batch_.where},
                         static_cast<reduction>(batch_.how), compressed ? scaling{} : batch_.scale);
}

/// The runs of a layout are the batch's tensors that have elements.
void batch_run::find_residuals() {
    std::size_t at = 0;
    for (auto const& item : batch_.items) {
        std::size_t const bytes = bytes_of(item);
        if (bytes == 0) continue;
        memory_run& run = layout_.runs[at++];
        if (run.in != nullptr)
            run.residual = shared_.lost.of(set_, unit_of(item).what.name, spec_of(item).name, bytes / sizeof(float)).data();
    }
}

/// Converts what is compressed on the way.
void batch_run::pack() {
    auto const begin = exchange_clock::now();
    std::byte* to = packed_;
    if (is_compressed()) {
        static simd const level = best_simd();
        if (batch_.error_feedback) find_residuals();
        for (auto const& run : layout_.runs) {
            std::size_t const count = run.bytes / sizeof(float);
            if (run.in == nullptr) {
                std::memset(to, 0, count * wire_bytes);  // sums and averages only
            } else {
                std::span const lost(run.residual, run.residual != nullptr ? count : 0);
                compress(batch_.wire, {reinterpret_cast<float const*>(run.in), count}, static_cast<float>(batch_.scale.before),
                         lost, to, level);
            }
            to += count * wire_bytes;
        }
    } else {
        for (auto const& run : layout_.runs) {
            if (run.in == nullptr)
                fill_neutral(batch_.type, batch_.how, to, run.bytes / size_of(batch_.type));
            else
                std::memcpy(to, run.in, run.bytes);
            to += run.bytes;
        }
    }
    if (shared_.trace.running())
        shared_.trace.add({trace_kind::pack, shared_.trace.intern(label_), 0, 0, trace_time(begin),
                           trace_time(exchange_clock::now()), batch_.bytes});
}

/// A single tensor. Blocks: its steps depend on each other.
void batch_run::start_adasum(std::byte const* in, std::byte* out, std::size_t count) {
    tensor_view const to{out, count, batch_.type, batch_.where};
    tensor_view from{const_cast<std::byte*>(in), count, batch_.type, batch_.where};
    if (batch_.scale.before != 1) {
        multiply(batch_.type, in, out, count, batch_.scale.before);
        from = to;
    }
    adasum(ranks_, label_, from, to);
    if (batch_.scale.after != 1) multiply(batch_.type, out, out, count, batch_.scale.after);
}

tensor_view batch_run::single_input(scratch& stand_in) {
    fusion_item const& item = batch_.items.front();
    if (tensor_io const* const io = io_of(item)) return io->in;
    auto const count = static_cast<std::size_t>(spec_of(item).shape.elements());
    tensor_view const view{stand_in.get(std::max<std::size_t>(bytes_of(item), 1)), count, batch_.type, batch_.where};
    fill_neutral(batch_.type, batch_.how, view.data, count);
    return view;
}

/// Where `count` elements go that came as so many rows from each rank: the caller's memory if that is its size, else memory of
/// our own.
tensor_view batch_run::output(std::size_t count, std::vector<std::int64_t> rows) {
    tensor_view view{nullptr, count, batch_.type, batch_.where};
    std::size_t const bytes = std::max<std::size_t>(view.bytes(), 1);
    pending* const unit = single();
    if (unit == nullptr) {
        view.data = second_.get(bytes);
        return view;
    }
    view.data = own_output(*unit, ranks_, count, std::move(rows));
    if (view.data == nullptr) {
        unit->memory.reset(new std::byte[bytes]);
        view.data = unit->memory.get();
    }
    unit->result = view;
    return view;
}

void batch_run::start_broadcast() {
    fusion_item const& item = batch_.items.front();
    tensor_io const* const io = io_of(item);
    tensor_view const view = io != nullptr ? io->out : single_input(first_);
    if (io != nullptr && ranks_.rank() == unit_of(item).what.root && io->in.data != io->out.data && view.count != 0)
        std::memcpy(io->out.data, io->in.data, view.bytes());
    operation_ = ranks_.broadcast(label_, view, unit_of(item).what.root);
}

void batch_run::start_allgather() {
    agreement const& agreed = unit_of(batch_.items.front());
    auto const counts = gather_counts(agreed);
    std::size_t total = 0;
    for (std::size_t const count : counts) total += count;
    tensor_view in = single() != nullptr ? single_input(first_) : tensor_view{nullptr, 0, batch_.type, batch_.where};
    operation_ = ranks_.allgather(label_, in, output(total, agreed.numbers), counts);
}

void batch_run::start_reducescatter() {
    agreement const& agreed = unit_of(batch_.items.front());
    tensor_shape const& shape = agreed.what.tensors.front().shape;
    auto const rows = static_cast<std::size_t>(shape.rows()), row = static_cast<std::size_t>(shape.row_elements());
    auto const in = single_input(first_);
    auto const mine = share_of(rows, ranks_.size(), ranks_.rank());
    share_ = output(mine.count * row, {static_cast<std::int64_t>(mine.count)});
    // Shares are of rows here and of elements in the communicator.
    if (row == 1 || rows % static_cast<std::size_t>(ranks_.size()) == 0) {
        operation_ = ranks_.reducescatter(label_, in, share_, static_cast<reduction>(batch_.how), batch_.scale);
        return;
    }
    // Rank by rank as many elements of this rank's share; they are combined here.
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

void batch_run::leak() noexcept {
    static_cast<void>(pieces_memory_.release());
    for (auto const& item : batch_.items)
        if (auto const& unit = units_[item.unit]) static_cast<void>(unit->memory.release());
}

void batch_run::combine_pieces() {
    std::vector<void const*> sources;
    for (int rank = 0; rank < ranks_.size(); ++rank)
        sources.push_back(static_cast<std::byte const*>(pieces_.data) + static_cast<std::size_t>(rank) * share_.bytes());
    combine(batch_.type, static_cast<reduction>(batch_.how), sources, share_.data, share_.count, batch_.scale);
}

void batch_run::start_alltoall() {
    alltoall_counts counts(unit_of(batch_.items.front()), ranks_.size(), ranks_.rank());
    tensor_view in{nullptr, 0, batch_.type, batch_.where};
    if (pending const* const unit = single()) {
        in = unit->tensors().front().in;
        if (counts.sent != in.count) {
            // A rank has joined: what was meant for it stays here, and the rest closes up.
            std::byte const* from = static_cast<std::byte const*>(in.data);
            std::byte* to = first_.get(std::max<std::size_t>(counts.sent * size_of(in.type), 1));
            in = {to, counts.sent, in.type, in.where};
            for (std::size_t rank = 0; rank < counts.send.size(); ++rank) {
                std::size_t const bytes = counts.send[rank] * size_of(in.type);
                if (bytes != 0) std::memcpy(to, from, bytes);
                to += bytes;
                from += static_cast<std::size_t>(unit->what->numbers[rank]) * counts.row * size_of(in.type);
            }
        }
    }
    operation_ = ranks_.alltoall(label_, in, counts.send, output(counts.total, std::move(counts.rows)), counts.receive);
}

bool batch_run::advance() {
    if (!operation_.done()) return false;
    auto const now = exchange_clock::now();
    if (shared_.trace.running())
        shared_.trace.add({trace_kind::collective, shared_.trace.intern(label_), shared_.trace.intern(to_string(batch_.kind)), 0,
                           trace_time(begin_), trace_time(now), batch_.bytes});
    if (pieces_.data != nullptr) combine_pieces();
    if (unpacks_) unpack();
    return true;
}

void batch_run::unpack() {
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
    if (shared_.trace.running())
        shared_.trace.add({trace_kind::unpack, shared_.trace.intern(label_), 0, 0, trace_time(begin),
                           trace_time(exchange_clock::now()), batch_.bytes});
}

}  // namespace muster::detail
