#include "comm/exchange/batch/device_batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <exception>
#include <new>

#include "base/log.hpp"
#include "comm/backend/argument_checks.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/keep_forever.hpp"
#include "comm/backend/speaker.hpp"
#include "comm/exchange/batch/plan_batches.hpp"
#include "comm/gradients/adasum.hpp"
#include "comm/tensor/reduction_kernels.hpp"

namespace muster::detail {

namespace {

std::shared_ptr<cuda::fusion_kernels const> find_kernels(std::shared_ptr<cuda::device const> const& on) {
    try {
        return cuda::fusion_kernels::load(on);
    } catch (error const& problem) {
        if (problem.code() != errc::unavailable) throw;
        spdlog::warn("tensors are copied one by one into the fusion buffer on {}: {}", on->name(), problem.what());
        return nullptr;
    }
}

std::unique_ptr<device_lane> make_lane(communicator& host, comm_options options, gpu_access& gpu) {
    std::shared_ptr<cuda::device const> on;
    std::exception_ptr problem;
    try {
        on = gpu.open();
        options.device = on->ordinal();
    } catch (error const&) {
        problem = std::current_exception();
    }
    // A rank without a GPU takes part, so that all ranks learn of it.
    communicator ranks = host.for_device(options);
    if (problem) std::rethrow_exception(problem);
    auto kernels = find_kernels(on);
    return std::make_unique<device_lane>(std::move(ranks), std::move(on), std::move(kernels));
}

}  // namespace

std::byte* device_scratch::get(std::size_t bytes) {
    constexpr std::size_t least = std::size_t{1} << 20;
    if (bytes > bytes_) {
        std::size_t const wanted = std::bit_ceil(std::max(bytes, least));
        memory_.push_back(cuda::make_memory(*on_, wanted));
        bytes_ = wanted;
    }
    return std::bit_cast<std::byte*>(memory_.back().get().handle);
}

std::byte* device_scratch::find(std::size_t bytes) const noexcept {
    return bytes <= bytes_ && !memory_.empty() ? std::bit_cast<std::byte*>(memory_.back().get().handle) : nullptr;
}

device_lane::device_lane(communicator over, std::shared_ptr<cuda::device const> gpu,
                         std::shared_ptr<cuda::fusion_kernels const> with)
    : on(std::move(gpu)),
      ranks(std::move(over)),
      stream(cuda::make_stream(*on)),
      kernels(std::move(with)),
      first(on),
      second(on) {
    ranks.use_stream(queue());
}

std::unique_ptr<device_lane> open_lane(communicator& host, comm_options const& options, gpu_access& gpu, std::string& refusal) {
    std::unique_ptr<device_lane> made;
    std::exception_ptr problem;
    try {
        made = make_lane(host, options, gpu);
        spdlog::debug("exchange: {}", made->ranks.why_backend());
    } catch (error const& known) {
        problem = std::current_exception();
        refusal = known.what();
    }
    std::array<std::int32_t, 2> able{made ? 1 : 0, made ? 0 : 1};  // the minimum tells whether all can and whether none can
    host.allreduce("device memory", view_of(std::span(able)), reduction::min).wait();
    if (able[0] == 1 || able[1] == 1) return made;
    if (problem) std::rethrow_exception(problem);
    throw comm_error(
        errc::peer_failed,
        fmt::format("{} ({}): this rank can work on device memory and another one cannot; look at what the others wrote",
                    made->ranks.backend(), speaker(host.who())));
}

namespace {

cuda::device_address address_of(void const* at) noexcept {
    return std::bit_cast<cuda::device_address>(at);
}

std::shared_ptr<cuda::unique_event const> record(device_lane& lane) {
    auto made = std::make_shared<cuda::unique_event const>(cuda::make_event(*lane.on));
    lane.check(lane.on->with().event_record(made->get().handle, lane.queue()), "cuEventRecord");
    return made;
}

}  // namespace

device_batch::device_batch(batch_parts const& with, device_lane& lane, communicator& host, device_movers& movers)
    : batch_collectives(with), lane_(lane), host_(host), movers_(movers) {
    if (batch_.kind == exchange_kind::allreduce && batch_.how != reduction::adasum) lay_out();
}

std::byte* device_batch::give_memory(pending_request& unit, group_result* part, std::size_t bytes) {
    auto& memory = part != nullptr ? part->device_memory : unit.gpu->memory;
    memory = cuda::make_memory(*lane_.on, bytes);
    return std::bit_cast<std::byte*>(memory.get().handle);
}

void device_batch::copy(void* to, void const* from, std::size_t bytes) {
    if (bytes != 0 && to != from)
        lane_.check(with().copy_device_to_device(address_of(to), address_of(from), bytes, lane_.queue()), "cuMemcpyDtoDAsync");
}

void device_batch::fill(tensor_view const& view) {
    if (view.count == 0) return;
    auto& values = read_by_device_.emplace_back(view.bytes());
    fill_neutral(view.type, batch_.how, values.data(), view.count);
    lane_.check(with().copy_host_to_device(address_of(view.data), values.data(), values.size(), lane_.queue()),
                "cuMemcpyHtoDAsync");
}

/// Makes the lane wait for what the program was doing with the tensors when it submitted them.
void device_batch::wait_for_programs() {
    pending_request const* before = nullptr;
    for (auto const& item : batch_.items) {
        pending_request const* const unit = units_[item.unit].get();
        if (unit == nullptr || unit == before) continue;
        before = unit;
        lane_.check(with().stream_wait_event(lane_.queue(), unit->gpu->given.get().handle, 0), "cuStreamWaitEvent");
    }
}

void device_batch::start() {
    cuda::device::scope const current(*lane_.on);
    wait_for_programs();
    start_collective();
}

bool device_batch::hand_over() {
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

handed_batch device_batch::take_handed() && {
    return {std::move(operation_),
            std::move(finished_),
            std::move(label_),
            batch_.kind,
            batch_.bytes,
            begin_,
            std::move(read_by_device_),
            {}};
}

void device_batch::leak() noexcept {
    handed_batch left;
    left.under_way = std::move(operation_);
    left.read_by_device = std::move(read_by_device_);
    left.leak();
    for (auto const& item : batch_.items)
        if (auto const& unit = units_[item.unit]) keep_device_memory(*unit);
}

std::byte* device_batch::find_buffer() const noexcept {
    return lane_.first.find(std::max<std::size_t>(in_.bytes(), 1));
}

/// If there are several tensors, each lies in the fusion buffer at a multiple of 16 bytes, so that all move in wide accesses. If
/// they lie so in the program's memory too, nothing is copied. The number of elements that ranks send depends on neither, since
/// ranks may differ in that.
void device_batch::lay_out() {
    std::vector<std::size_t> counts;
    for (auto const& item : batch_.items) counts.push_back(count_of(item));
    auto const offsets = cuda::fused_offsets(counts, sent_type());
    std::size_t const total = offsets[counts.size() - 1] + counts.back();
    in_ = out_ = {nullptr, total, sent_type(), memory_kind::device};
    pack_ = unpack_ = {};
    missing_.clear();
    find_gap_free(counts, offsets, total);
    if (needs_no_buffer()) return;
    auto* const buffer = find_buffer();
    if (buffer != nullptr) plan_moves(buffer, counts, offsets);  // otherwise make_room() makes one and calls this again
}

/// Uses the program's tensors instead of a fusion buffer if they lie as in one.
void device_batch::find_gap_free(std::span<std::size_t const> counts, std::span<std::size_t const> offsets, std::size_t total) {
    tensor_io const* const first = io_of(batch_.items.front());
    std::size_t sum = 0;
    for (std::size_t const count : counts) sum += count;
    // The gaps between the tensors belong to others and must not be sent.
    if (first == nullptr || is_compressed() || sum != total) return;
    auto const lies_so = [&](tensor_view tensor_io::*which) {
        for (std::size_t i = 0; i < counts.size(); ++i) {
            tensor_io const* const io = io_of(batch_.items[i]);
            auto const* const place = static_cast<std::byte const*>((first->*which).data) + offsets[i] * size_of(batch_.type);
            if (io == nullptr || (io->*which).data != place) return false;
        }
        return true;
    };
    if (lies_so(&tensor_io::in)) in_.data = first->in.data;
    if (lies_so(&tensor_io::out)) out_.data = first->out.data;
    // Input and output of a collective must not overlap partly.
    if (needs_no_buffer() && in_.data != out_.data && overlap(in_, out_)) out_.data = nullptr;
}

void device_batch::plan_moves(std::byte* buffer, std::span<std::size_t const> counts, std::span<std::size_t const> offsets) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
        tensor_view const place{buffer + offsets[i] * size_of(in_.type), counts[i], in_.type, memory_kind::device};
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
    if (is_compressed()) pack_.factor = batch_.scale.before;
    if (is_compressed()) unpack_.factor = batch_.scale.after;
}

bool device_batch::repeats() const {
    if (batch_.kind != exchange_kind::allreduce || batch_.how == reduction::adasum) return false;
    if (needs_no_buffer()) return true;
    return find_buffer() != nullptr && movers_.pack.repeats(pack_) && movers_.unpack.repeats(unpack_);
}

/// Has no data until the residual is made.
tensor_view device_batch::residual_of(fusion_item const& item) const {
    std::size_t const count = count_of(item);
    return {shared_.lost_on_device.find(set_, unit_of(item).what.name, spec_of(item).name, count), count, dtype::f32,
            memory_kind::device};
}

/// Asks the driver for the batch's memory and assigns the tensors their places.
void device_batch::make_room() {
    lane_.first.get(std::max<std::size_t>(in_.bytes(), 1));
    for (auto const& item : batch_.items)
        if (feeds_back() && io_of(item) != nullptr)
            shared_.lost_on_device.make(set_, unit_of(item).what.name, spec_of(item).name, count_of(item), lane_.on,
                                        lane_.queue());
    lay_out();
    if (!movers_.pack.repeats(pack_)) movers_.pack.prepare(lane_, pack_);
    if (!movers_.unpack.repeats(unpack_)) movers_.unpack.prepare(lane_, unpack_);
}

void device_batch::start_allreduce() {
    if (batch_.how == reduction::adasum)
        start_adasum();
    else
        start_fused_allreduce();
}

void device_batch::start_fused_allreduce() {
    bool const reads = in_.data != nullptr, writes = out_.data != nullptr;
    if (reads && writes) counters::add(shared_.count.zero_copy_batches);
    if (!reads || !writes) {
        if (!repeats()) make_room();
        auto* const buffer = find_buffer();
        if (!reads) in_.data = buffer;
        if (!writes) out_.data = buffer;
        for (auto const& place : missing_) fill(place);
        if (!pack_.from.empty()) movers_.pack.move(lane_);
    }
    operation_ = ranks_.allreduce(label_, in_, out_, batch_.how, is_compressed() ? scaling{} : batch_.scale);
}

/// Reduces all of it on every rank, and takes the share from it.
void device_batch::start_uneven_reducescatter(tensor_view const& in, tensor_view const& out, element_range const& mine) {
    tensor_view whole = in;
    whole.data = lane_.first.get(std::max<std::size_t>(whole.bytes(), 1));
    share_from_ = part_of(whole, mine);
    share_to_ = out;
    operation_ = ranks_.allreduce(label_, in, whole, batch_.how, batch_.scale);
}

/// Adasum computes its weights in f64 and has no kernels: the tensor goes through host memory.
void device_batch::start_adasum() {
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

void device_batch::finish_adasum() {
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

void device_mover::prepare(device_lane& lane, device_move what) {
    last_ = {};  // in case anything below throws
    bool const converts = what.factor != 1 || (!what.from.empty() && what.from.front().type != what.to.front().type);
    if (!lane.kernels && converts)
        throw comm_error(
            errc::unavailable,
            fmt::format("compression on {} needs kernels, which could not be loaded; give compression none", lane.on->name()));
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
            lane.check(lane.on->with().copy_device_to_device(std::bit_cast<cuda::device_address>(last_.to[i].data),
                                                             std::bit_cast<cuda::device_address>(last_.from[i].data),
                                                             last_.from[i].bytes(), lane.queue()),
                       "cuMemcpyDtoDAsync");
}

bool has_passed(device_lane& lane, cuda::unique_event const& event) {
    int const code = lane.on->with().event_query(event.get().handle);
    if (code == cuda::error_not_ready) return false;
    lane.check(code, "cuEventQuery");
    return true;
}

bool handed_batch::done(device_lane& lane) {
    return under_way.done() && has_passed(lane, *finished);
}

void keep_device_memory(pending_request& of) noexcept {
    keep_forever(std::move(of.gpu->memory));
    for (auto& part : of.parts) keep_forever(std::move(part.device_memory));
}

void handed_batch::leak() noexcept {
    try {
        under_way.wait(duration{1e-9});  // gives it up: its destructor would wait for ranks that have failed
    } catch (...) {
    }
    for (auto const& each : ends)
        if (each.what && each.what->gpu) keep_device_memory(*each.what);
    static_cast<void>(new (std::nothrow) std::vector<std::vector<std::byte>>(std::move(read_by_device)));
}

}  // namespace muster::detail
