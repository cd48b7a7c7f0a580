#include "comm/exchange/batch/device_batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <new>

#include "comm/backend/comm_error.hpp"
#include "comm/exchange/batch/batch_counts.hpp"
#include "comm/exchange/batch/host_batch.hpp"
#include "comm/gradients/adasum.hpp"
#include "comm/tensor/reduction_kernels.hpp"

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

void device_mover::prepare(device_lane& lane, device_move what) {
    last_ = {};  // should anything below throw
    bool const converts = what.factor != 1 || (!what.from.empty() && what.from.front().type != what.to.front().type);
    if (!lane.kernels && converts)
        throw comm_error(
            errc::unavailable,
            fmt::format("compression on {} needs kernels that it cannot load; give compression none", lane.on->name()));
    if (lane.kernels && !what.from.empty()) {
        if (!launch_) launch_.emplace(lane.kernels);
        launch_->prepare(what.from, what.to, what.factor, lane.queue(), 0, what.residuals);
    }
    last_ = std::move(what);
}

void device_mover::move(device_lane& lane) {
    if (lane.kernels && !last_.from.empty()) return launch_->run(lane.queue());
    for (std::size_t i = 0; i < last_.from.size(); ++i)
        if (last_.from[i].count != 0)
            lane.check(lane.on->with().copy_device_to_device(address_of(last_.to[i].data), address_of(last_.from[i].data),
                                                             last_.from[i].bytes(), lane.queue()),
                       "cuMemcpyDtoDAsync");
}

device_run::device_run(parts const& with, fused_batch const& batch, std::span<std::shared_ptr<agreement const> const> agreed,
                       std::span<pending_ptr const> units)
    : set_(with.set),
      lane_(with.lane),
      host_(with.host),
      shared_(with.shared),
      movers_(with.movers),
      batch_(batch),
      agreed_(agreed),
      units_(units) {
    std::string const& name = unit_of(batch.items.front()).what.name;
    label_ = batch.items.size() == 1 ? name : fmt::format("{} (+{})", name, batch.items.size() - 1);
    if (batch.kind == exchange_kind::allreduce && batch.how != exchange_reduction::adasum) lay_out();
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
    if (!unpack_.from.empty()) movers_.unpack.move(lane_);
    copy(share_to_.data, share_from_.data, share_to_.bytes());
    finished_ = record(lane_);
    return true;
}

device_flight device_run::take_off() && {
    return {std::move(operation_),
            std::move(finished_),
            std::move(label_),
            batch_.kind,
            batch_.bytes,
            begin_,
            std::move(read_by_device_),
            {}};
}

void device_run::leak() noexcept {
    device_flight left;
    left.under_way = std::move(operation_);
    left.read_by_device = std::move(read_by_device_);
    left.leak();
    for (auto const& item : batch_.items)
        if (auto const& unit = units_[item.unit]) static_cast<void>(unit->gpu->memory.release());
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
void device_run::lay_out() {
    std::vector<std::size_t> counts;
    std::size_t sum = 0;
    for (auto const& item : batch_.items) sum += counts.emplace_back(count_of(item));
    bool const compressed = is_compressed();
    dtype const wire = !compressed ? batch_.type : batch_.wire == compression::f16 ? dtype::f16 : dtype::bf16;
    auto const offsets = cuda::fused_offsets(counts, wire);
    std::size_t const total = offsets[counts.size() - 1] + counts.back();
    tensor_io const* const first = io_of(batch_.items.front());
    // Between the tensors there must be nothing of anybody else's.
    bool const can_lie_so = first != nullptr && !compressed && sum == total;
    auto const lies_so = [&](tensor_view tensor_io::*which) {
        for (std::size_t i = 0; can_lie_so && i < counts.size(); ++i) {
            tensor_io const* const io = io_of(batch_.items[i]);
            if (io == nullptr ||
                (io->*which).data != static_cast<std::byte const*>((first->*which).data) + offsets[i] * size_of(wire))
                return false;
        }
        return can_lie_so;
    };
    in_ = out_ = {nullptr, total, wire, memory_kind::device};
    pack_ = unpack_ = {};
    missing_.clear();
    if (lies_so(&tensor_io::in)) in_.data = first->in.data;
    if (lies_so(&tensor_io::out)) out_.data = first->out.data;
    if (in_.data != nullptr && out_.data != nullptr && in_.data != out_.data) {
        // Memory that partly overlaps itself is no input of a collective.
        auto const *const a = static_cast<std::byte const*>(in_.data), *const b = static_cast<std::byte const*>(out_.data);
        if (a < b + out_.bytes() && b < a + in_.bytes()) out_.data = nullptr;
    }
    if (in_.data != nullptr && out_.data != nullptr) return;
    auto* const buffer = lane_.first.find(std::max<std::size_t>(in_.bytes(), 1));
    if (buffer == nullptr) return;  // start() makes it and comes here again
    for (std::size_t i = 0; i < counts.size(); ++i) {
        tensor_view const place{buffer + offsets[i] * size_of(wire), counts[i], wire, memory_kind::device};
        tensor_io const* const io = io_of(batch_.items[i]);
        if (io == nullptr) missing_.push_back(place);
        if (io == nullptr) continue;
        if (in_.data == nullptr) {
            pack_.from.push_back(io->in);
            pack_.to.push_back(place);
            if (feeds_back()) pack_.residuals.push_back(residual_of(batch_.items[i]));
        }
        if (out_.data == nullptr) {
            unpack_.from.push_back(place);
            unpack_.to.push_back(io->out);
        }
    }
    if (compressed) pack_.factor = batch_.scale.before;
    if (compressed) unpack_.factor = batch_.scale.after;
}

bool device_run::repeats() const {
    if (batch_.kind != exchange_kind::allreduce || batch_.how == exchange_reduction::adasum) return false;
    if (in_.data != nullptr && out_.data != nullptr) return true;
    return lane_.first.find(std::max<std::size_t>(in_.bytes(), 1)) != nullptr && movers_.pack.repeats(pack_) &&
           movers_.unpack.repeats(unpack_);
}

/// Without data while there is none.
tensor_view device_run::residual_of(fusion_item const& item) const {
    std::size_t const count = count_of(item);
    return {shared_.lost_on_device.find(set_, unit_of(item).what.name, spec_of(item).name, count), count, dtype::f32,
            memory_kind::device};
}

/// Asks the driver for what the batch needs, and finds its place in it.
void device_run::make_room() {
    lane_.first.get(std::max<std::size_t>(in_.bytes(), 1));
    for (auto const& item : batch_.items)
        if (feeds_back() && io_of(item) != nullptr)
            shared_.lost_on_device.make(set_, unit_of(item).what.name, spec_of(item).name, count_of(item), lane_.on,
                                        lane_.queue());
    lay_out();
    if (!movers_.pack.repeats(pack_)) movers_.pack.prepare(lane_, pack_);
    if (!movers_.unpack.repeats(unpack_)) movers_.unpack.prepare(lane_, unpack_);
}

void device_run::start_allreduce() {
    bool const reads = in_.data != nullptr, writes = out_.data != nullptr;
    if (reads && writes) counters::add(shared_.count.zero_copy_batches);
    if (!reads || !writes) {
        if (!repeats()) make_room();
        auto* const buffer = lane_.first.find(std::max<std::size_t>(in_.bytes(), 1));
        if (!reads) in_.data = buffer;
        if (!writes) out_.data = buffer;
        for (auto const& place : missing_) fill(place);
        if (!pack_.from.empty()) movers_.pack.move(lane_);
    }
    operation_ =
        lane_.ranks.allreduce(label_, in_, out_, static_cast<reduction>(batch_.how), is_compressed() ? scaling{} : batch_.scale);
}

/// Adasum weighs in f64 and has no kernels: the tensor goes through host memory.
void device_run::start_adasum() {
    fusion_item const& item = batch_.items.front();
    std::size_t const bytes = count_of(item) * size_of(batch_.type);
    if (bytes > lane_.staging_bytes) {
        lane_.staging_bytes = 0;
        lane_.staging = cuda::make_pinned(*lane_.on, std::bit_ceil(bytes));
        lane_.staging_bytes = std::bit_ceil(bytes);
    }
    void* const staging = lane_.staging.get().handle;
    if (tensor_io const* const io = io_of(item)) {
        if (bytes != 0)
            lane_.check(with().copy_device_to_host(staging, address_of(io->in.data), bytes, lane_.queue()), "cuMemcpyDtoHAsync");
    } else {
        fill_neutral(batch_.type, batch_.how, staging, count_of(item));
    }
    staged_ = record(lane_);
}

void device_run::finish_adasum() {
    staged_.reset();
    fusion_item const& item = batch_.items.front();
    tensor_view const view{lane_.staging.get().handle, count_of(item), batch_.type, memory_kind::host};
    if (batch_.scale.before != 1) multiply(view.type, view.data, view.data, view.count, batch_.scale.before);
    adasum(host_, label_, view, view);
    if (batch_.scale.after != 1) multiply(view.type, view.data, view.data, view.count, batch_.scale.after);
    tensor_io const* const io = io_of(item);
    if (io != nullptr && view.count != 0)
        lane_.check(with().copy_host_to_device(address_of(io->out.data), view.data, view.bytes(), lane_.queue()),
                    "cuMemcpyHtoDAsync");
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
