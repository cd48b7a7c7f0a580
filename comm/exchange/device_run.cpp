#include "comm/exchange/internal/device_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <new>

#include "comm/adasum.hpp"
#include "comm/comm_error.hpp"
#include "comm/exchange/internal/batch_counts.hpp"
#include "comm/exchange/internal/batch_run.hpp"
#include "comm/kernels.hpp"

namespace muster::detail {

namespace {

cuda::device_address address_of(void const* at) noexcept {
    return std::bit_cast<cuda::device_address>(at);
}

std::shared_ptr<cuda::unique_event const> record(device_lane& lane) {
    auto made = std::make_shared<cuda::unique_event const>(cuda::make_event(*lane.on));
    lane.check(lane.on->with().event_record(made->get().handle, lane.queue()), "cuEventRecord");
    return made;
}

bool has_passed(device_lane& lane, cuda::unique_event const& event) {
    int const code = lane.on->with().event_query(event.get().handle);
    if (code == cuda::error_not_ready) return false;
    lane.check(code, "cuEventQuery");
    return true;
}

}  // namespace

void device_mover::move(device_lane& lane, std::span<tensor_view const> from, std::span<tensor_view const> to, double factor) {
    if (!lane.kernels) {
        if (factor != 1 || (!from.empty() && from.front().type != to.front().type))
            throw comm_error(errc::unavailable, fmt::format("compression on {} needs kernels that it cannot load; give compression "
                                                            "none",
                                                            lane.on->name()));
        for (std::size_t i = 0; i < from.size(); ++i)
            if (from[i].count != 0)
                lane.check(lane.on->with().copy_device_to_device(address_of(to[i].data), address_of(from[i].data), from[i].bytes(),
                                                                 lane.queue()),
                           "cuMemcpyDtoDAsync");
        return;
    }
    bool const is_prepared = launch_ && factor == factor_ && std::ranges::equal(from, from_) && std::ranges::equal(to, to_);
    if (!is_prepared) {
        if (!launch_) launch_.emplace(lane.kernels);
        from_.clear();  // should the next line throw
        launch_->prepare(from, to, factor, lane.queue());
        from_.assign(from.begin(), from.end());
        to_.assign(to.begin(), to.end());
        factor_ = factor;
    }
    launch_->run(lane.queue());
}

device_run::device_run(parts const& with, fused_batch const& batch,
                       std::span<std::shared_ptr<agreement const> const> agreed, std::span<pending_ptr const> units)
    : lane_(with.lane),
      host_(with.host),
      shared_(with.shared),
      movers_(with.movers),
      batch_(batch),
      agreed_(agreed),
      units_(units) {
    std::string const& name = unit_of(batch.items.front()).what.name;
    label_ = batch.items.size() == 1 ? name : fmt::format("{} (+{})", name, batch.items.size() - 1);
}

tensor_io const* device_run::io_of(fusion_item const& item) const {
    auto const& unit = units_[item.unit];
    return unit ? &unit->tensors()[item.tensor] : nullptr;
}

void device_run::copy(void* to, void const* from, std::size_t bytes) {
    if (bytes != 0 && to != from)
        lane_.check(with().copy_device_to_device(address_of(to), address_of(from), bytes, lane_.queue()), "cuMemcpyDtoDAsync");
}

/// Neutral elements, for what this rank has joined in.
void device_run::fill(tensor_view const& view) {
    if (view.count == 0) return;
    auto& values = read_by_device_.emplace_back(view.bytes());
    fill_neutral(view.type, batch_.how, values.data(), view.count);
    lane_.check(with().copy_host_to_device(address_of(view.data), values.data(), values.size(), lane_.queue()),
                "cuMemcpyHtoDAsync");
}

/// What the program was doing with the tensors when it submitted them comes first.
void device_run::wait_for_programs() {
    pending const* before = nullptr;
    for (auto const& item : batch_.items) {
        pending const* const unit = units_[item.unit].get();
        if (unit == nullptr || unit == before) continue;
        before = unit;
        lane_.check(with().stream_wait_event(lane_.queue(), unit->gpu->given.get().handle, 0), "cuStreamWaitEvent");
    }
}

void device_run::start() {
    begin_ = exchange_clock::now();
    cuda::device::scope const current(*lane_.on);
    wait_for_programs();
    switch (batch_.kind) {
        case exchange_kind::allreduce: batch_.how == exchange_reduction::adasum ? start_adasum() : start_allreduce(); break;
        case exchange_kind::broadcast: start_broadcast(); break;
        case exchange_kind::allgather: start_allgather(); break;
        case exchange_kind::reducescatter: start_reducescatter(); break;
        case exchange_kind::alltoall: start_alltoall(); break;
        default: break;
    }
}

bool device_run::hand_over() {
    if (finished_) return true;
    cuda::device::scope const current(*lane_.on);
    if (staged_) {
        if (!has_passed(lane_, *staged_)) return false;
        finish_adasum();
    }
    if (!operation_.try_order(lane_.queue())) return false;
    if (packed_.data != nullptr) unpack();
    copy(share_to_.data, share_from_.data, share_to_.bytes());
    finished_ = record(lane_);
    return true;
}

device_flight device_run::take_off() && {
    return {std::move(operation_), std::move(finished_), std::move(label_),          batch_.kind,
            batch_.bytes,          begin_,               std::move(read_by_device_), {}};
}

void device_run::leak() noexcept {
    device_flight left;
    left.under_way = std::move(operation_);
    left.read_by_device = std::move(read_by_device_);
    left.leak();
    for (auto const& item : batch_.items)
        if (auto const& unit = units_[item.unit]) static_cast<void>(unit->gpu->memory.release());
    static_cast<void>(new (std::nothrow) std::vector<std::byte>(std::move(on_host_)));
}

bool device_flight::done(device_lane& lane) {
    return under_way.done() && has_passed(lane, *finished);
}

void device_flight::leak() noexcept {
    try {
        under_way.wait(duration{1e-9});  // gives it up: its destructor would wait for those who do not come
    } catch (...) {
    }
    for (auto const& each : ends)
        if (each.what && each.what->gpu) static_cast<void>(each.what->gpu->memory.release());
    static_cast<void>(new (std::nothrow) std::vector<std::vector<std::byte>>(std::move(read_by_device)));
}

/// Several tensors lie in the fusion buffer each at a multiple of 16 bytes, so that all of them move in wide accesses. Where they
/// lie so in the program's memory too, nothing is copied. The number of elements that travel depends on neither, since ranks may
/// differ in that.
void device_run::start_allreduce() {
    std::vector<std::size_t> counts;
    std::vector<tensor_view> from;
    for (auto const& item : batch_.items) counts.push_back(count_of(item));
    bool const compressed = is_compressed();
    dtype const wire = !compressed ? batch_.type : batch_.wire == compression::f16 ? dtype::f16 : dtype::bf16;
    offsets_ = cuda::fused_offsets(counts, wire);
    std::size_t const total = offsets_[counts.size() - 1] + counts.back();
    tensor_io const* const first = io_of(batch_.items.front());
    auto const lies_as_buffer = [&](auto const& view_of_io) {
        if (first == nullptr || compressed) return false;
        auto const* const begin = static_cast<std::byte const*>(view_of_io(*first).data);
        for (std::size_t i = 0; i < counts.size(); ++i) {
            tensor_io const* const io = io_of(batch_.items[i]);
            if (io == nullptr || view_of_io(*io).data != begin + offsets_[i] * size_of(wire)) return false;
        }
        // Between the tensors there must be nothing of anybody else's.
        std::size_t sum = 0;
        for (std::size_t const count : counts) sum += count;
        return sum == total;
    };
    bool const reads = lies_as_buffer([](tensor_io const& io) { return io.in; });
    bool writes = lies_as_buffer([](tensor_io const& io) { return io.out; });
    if (reads && writes && first->in.data != first->out.data) {
        // Memory that partly overlaps itself is no input of a collective.
        auto const* const a = static_cast<std::byte const*>(first->in.data);
        auto const* const b = static_cast<std::byte const*>(first->out.data);
        std::size_t const bytes = total * size_of(wire);
        writes = a >= b + bytes || b >= a + bytes;
    }
    tensor_view buffer{nullptr, total, wire, memory_kind::device};
    if (!reads || !writes) buffer.data = lane_.first.get(std::max<std::size_t>(buffer.bytes(), 1));
    tensor_view in = buffer, out = buffer;
    if (reads) in.data = first->in.data;
    if (writes) out.data = first->out.data;
    if (reads && writes)
        counters::add(shared_.count.zero_copy_batches);
    else if (!reads)
        pack(wire, static_cast<std::byte*>(buffer.data));
    if (!writes) packed_ = buffer;
    operation_ =
        lane_.ranks.allreduce(label_, in, out, static_cast<reduction>(batch_.how), compressed ? scaling{} : batch_.scale);
}

void device_run::pack(dtype wire, std::byte* buffer) {
    std::vector<tensor_view> from, to;
    for (std::size_t i = 0; i < batch_.items.size(); ++i) {
        tensor_view const place{buffer + offsets_[i] * size_of(wire), count_of(batch_.items[i]), wire, memory_kind::device};
        if (tensor_io const* const io = io_of(batch_.items[i])) {
            from.push_back(io->in);
            to.push_back(place);
        } else {
            fill(place);
        }
    }
    movers_.pack.move(lane_, from, to, is_compressed() ? batch_.scale.before : 1);
}

void device_run::unpack() {
    std::vector<tensor_view> from, to;
    auto* const buffer = static_cast<std::byte*>(packed_.data);
    for (std::size_t i = 0; i < batch_.items.size(); ++i) {
        tensor_io const* const io = io_of(batch_.items[i]);
        if (io == nullptr) continue;
        from.push_back({buffer + offsets_[i] * size_of(packed_.type), io->out.count, packed_.type, memory_kind::device});
        to.push_back(io->out);
    }
    movers_.unpack.move(lane_, from, to, is_compressed() ? batch_.scale.after : 1);
}

/// Adasum weighs in f64 and has no kernels: the tensor goes through host memory.
void device_run::start_adasum() {
    fusion_item const& item = batch_.items.front();
    on_host_.resize(std::max<std::size_t>(count_of(item) * size_of(batch_.type), 1));
    if (tensor_io const* const io = io_of(item)) {
        if (io->in.count != 0)
            lane_.check(with().copy_device_to_host(on_host_.data(), address_of(io->in.data), io->in.bytes(), lane_.queue()),
                        "cuMemcpyDtoHAsync");
    } else {
        fill_neutral(batch_.type, batch_.how, on_host_.data(), count_of(item));
    }
    staged_ = record(lane_);
}

void device_run::finish_adasum() {
    staged_.reset();
    fusion_item const& item = batch_.items.front();
    tensor_view const view{on_host_.data(), count_of(item), batch_.type, memory_kind::host};
    if (batch_.scale.before != 1) multiply(view.type, view.data, view.data, view.count, batch_.scale.before);
    adasum(host_, label_, view, view);
    if (batch_.scale.after != 1) multiply(view.type, view.data, view.data, view.count, batch_.scale.after);
    tensor_io const* const io = io_of(item);
    if (io != nullptr && view.count != 0)
        lane_.check(with().copy_host_to_device(address_of(io->out.data), view.data, view.bytes(), lane_.queue()),
                    "cuMemcpyHtoDAsync");
    read_by_device_.push_back(std::move(on_host_));
}

tensor_view device_run::single_input(device_scratch& stand_in) {
    fusion_item const& item = batch_.items.front();
    if (tensor_io const* const io = io_of(item)) return io->in;
    tensor_view view{nullptr, count_of(item), batch_.type, memory_kind::device};
    view.data = stand_in.get(std::max<std::size_t>(view.bytes(), 1));
    fill(view);
    return view;
}

tensor_view device_run::output(std::size_t count, std::vector<std::int64_t> rows) {
    tensor_view view{nullptr, count, batch_.type, memory_kind::device};
    std::size_t const bytes = std::max<std::size_t>(view.bytes(), 1);
    pending* const unit = single();
    if (unit == nullptr) {
        view.data = lane_.second.get(bytes);
        return view;
    }
    view.data = own_output(*unit, lane_.ranks, count, std::move(rows));
    if (view.data == nullptr) {
        unit->gpu->memory = cuda::make_memory(*lane_.on, bytes);
        view.data = std::bit_cast<void*>(unit->gpu->memory.get().handle);
    }
    unit->result = view;
    return view;
}

void device_run::start_broadcast() {
    fusion_item const& item = batch_.items.front();
    tensor_io const* const io = io_of(item);
    tensor_view const view = io != nullptr ? io->out : single_input(lane_.first);
    if (io != nullptr && lane_.ranks.rank() == unit_of(item).what.root) copy(io->out.data, io->in.data, view.bytes());
    operation_ = lane_.ranks.broadcast(label_, view, unit_of(item).what.root);
}

void device_run::start_allgather() {
    agreement const& agreed = unit_of(batch_.items.front());
    auto const counts = gather_counts(agreed);
    std::size_t total = 0;
    for (std::size_t const count : counts) total += count;
    tensor_view const in =
        single() != nullptr ? single_input(lane_.first) : tensor_view{nullptr, 0, batch_.type, memory_kind::device};
    operation_ = lane_.ranks.allgather(label_, in, output(total, agreed.numbers), counts);
}

void device_run::start_reducescatter() {
    tensor_shape const& shape = spec_of(batch_.items.front()).shape;
    auto const rows = static_cast<std::size_t>(shape.rows()), row = static_cast<std::size_t>(shape.row_elements());
    int const ranks = lane_.ranks.size();
    tensor_view const in = single_input(lane_.first);
    auto const mine = share_of(rows, ranks, lane_.ranks.rank());
    tensor_view const out = output(mine.count * row, {static_cast<std::int64_t>(mine.count)});
    auto const how = static_cast<reduction>(batch_.how);
    // Shares are of rows here and of elements in the communicator.
    if (row == 1 || rows % static_cast<std::size_t>(ranks) == 0) {
        operation_ = lane_.ranks.reducescatter(label_, in, out, how, batch_.scale);
        return;
    }
    // Else everything is reduced everywhere, and the share taken from it.
    tensor_view whole = in;
    whole.data = lane_.first.get(std::max<std::size_t>(whole.bytes(), 1));
    share_from_ = part_of(whole, {mine.first * row, mine.count * row});
    share_to_ = out;
    operation_ = lane_.ranks.allreduce(label_, in, whole, how, batch_.scale);
}

void device_run::start_alltoall() {
    agreement const& agreed = unit_of(batch_.items.front());
    alltoall_counts counts(agreed, lane_.ranks.size(), lane_.ranks.rank());
    tensor_view in{nullptr, 0, batch_.type, memory_kind::device};
    if (pending const* const unit = single()) {
        in = unit->tensors().front().in;
        if (counts.sent != in.count) {
            // A rank has joined: what was meant for it stays here, and the rest closes up.
            std::byte const* from = static_cast<std::byte const*>(in.data);
            std::byte* to = lane_.first.get(std::max<std::size_t>(counts.sent * size_of(in.type), 1));
            in = {to, counts.sent, in.type, in.where};
            for (std::size_t rank = 0; rank < counts.send.size(); ++rank) {
                std::size_t const bytes = counts.send[rank] * size_of(in.type);
                copy(to, from, bytes);
                to += bytes;
                from += static_cast<std::size_t>(unit->what->numbers[rank]) * counts.row * size_of(in.type);
            }
        }
    }
    operation_ = lane_.ranks.alltoall(label_, in, counts.send, output(counts.total, std::move(counts.rows)), counts.receive);
}

}  // namespace muster::detail
