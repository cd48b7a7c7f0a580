#include "comm/exchange/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "comm/backend/comm_error.hpp"
#include "comm/backend/speaker.hpp"
#include "comm/cuda/fusion_kernels.hpp"
#include "comm/exchange/core/exchange_core.hpp"
#include "comm/exchange/request/pending_request.hpp"

namespace muster {

using detail::pending_ptr;

namespace {

/// A request that is being made.
struct draft {
    std::shared_ptr<exchange_request> what = std::make_shared<exchange_request>();
    pending_ptr one = pending_ptr::make();

    draft(exchange_kind kind, std::string_view name, int set) {
        what->kind = kind;
        what->name = name;
        one->what = what;
        one->set = set;
    }
};

draft one_tensor(exchange_kind kind, std::string_view name, tensor_view const& in, tensor_view const& out,
                 exchange_call const& call) {
    draft made(kind, name, call.set);
    made.what->scale = call.scale;
    // The tensor needs no name, since the request has it.
    made.what->tensors.push_back({{}, in.type, in.where, call.shape ? *call.shape : flat_shape(in.count)});
    made.what->places.push_back(reinterpret_cast<std::uint64_t>(in.data));
    made.one->one = {in, out};
    made.one->bytes = in.bytes();
    made.one->result = out;
    return made;
}

draft many_tensors(exchange_kind kind, std::string_view name, std::span<named_tensor const> tensors, reduction how,
                   exchange_call const& call) {
    draft made(kind, name, call.set);
    made.what->scale = call.scale;
    made.what->how = how;
    made.what->tensors.reserve(tensors.size());
    made.what->places.reserve(tensors.size());
    auto all = std::make_shared<std::vector<detail::tensor_io>>();
    all->reserve(tensors.size());
    for (auto const& each : tensors) {
        made.what->tensors.push_back(
            {std::string(each.name), each.in.type, each.in.where, each.shape ? *each.shape : flat_shape(each.in.count)});
        made.what->places.push_back(reinterpret_cast<std::uint64_t>(each.in.data));
        all->push_back({each.in, each.out});
        made.one->bytes += each.in.bytes();
    }
    made.one->many = std::move(all);
    return made;
}

bool is_on_device(named_tensor const& one) noexcept {
    return one.in.where == memory_kind::device;
}

/// The memory that has f32 tensors: only these are compressed.
struct compressible {
    bool on_host = false;
    bool on_device = false;

    void add(tensor_view const& one) noexcept {
        if (one.type == dtype::f32) (one.where == memory_kind::host ? on_host : on_device) = true;
    }
};

/// The compression of tensors: that of the call, which must be possible (else `fault`), or that of the exchange's options where
/// it is possible.
struct wire_choice {
    compression wire = compression::none;
    bool error_feedback = false;
    std::string fault{};
};
wire_choice choose_wire(exchange_options const& options, exchange_call const& call, reduction how, compressible const& which) {
    compression const wire = call.wire.value_or(options.wire);
    if (wire == compression::none) return {};
    bool const adds = how == reduction::sum || how == reduction::average;
    auto const refusal = [&](std::string why) -> wire_choice {
        if (!call.wire) return {};
        return {compression::none, false, fmt::format("compression {} {}; give none", to_string(wire), why)};
    };
    if (!adds || (!which.on_host && !which.on_device))
        return refusal(fmt::format("is for sums and averages of f32{}", adds ? "" : fmt::format(", not for {}", to_string(how))));
    if (which.on_device)
        if (auto const why = cuda::kernels_missing()) return refusal("of tensors in device memory: " + *why);
    return {wire, call.error_feedback.value_or(options.error_feedback)};
}

}  // namespace

exchange::exchange(identity const& who, exchange_options const& options)
    : core_(new detail::exchange_core(who, options), [](detail::exchange_core* core) {
          if (!core->is_foreign()) delete core;  // a forked child leaves it as it is: it has no such thread to wait for
      }) {}

exchange::~exchange() {
    core_->close(std::uncaught_exceptions() > 0);
}

int exchange::rank() const noexcept {
    return core_->who().rank;
}
int exchange::size() const noexcept {
    return core_->who().world_size;
}
identity const& exchange::who() const noexcept {
    return core_->who();
}
std::string const& exchange::backend() const noexcept {
    return core_->backend();
}
std::string const& exchange::why_backend() const noexcept {
    return core_->why_backend();
}

std::string_view exchange::device_backend() const {
    return core_->device_backend();
}

[[noreturn]] void exchange::refuse(exchange_kind kind, std::string_view name, std::string const& fault) const {
    throw comm_error(errc::usage, fmt::format("{} ({}): {}", describe(kind, name), speaker(who()), fault));
}

void exchange::check_name(exchange_kind kind, std::string_view name, int set) const {
    if (name.empty()) refuse(kind, name, "it has no name; give it one, the same on all ranks");
    if (name.front() == internal_name && kind < exchange_kind::barrier)
        refuse(kind, name, "the name begins with the byte 1, which is kept for the exchange; give another");
    if (set != 0 && rank_in(set) < 0) refuse(kind, name, fmt::format("this rank is not a member of process set {}", set));
}

exchange_handle exchange::submit(detail::pending_ptr const& what, exchange_call const& call) {
    exchange_request const& asked = *what->what;
    check_name(asked.kind, asked.name, what->set);
    int const set = what->set;
    auto const fault = detail::fault_of(*what, set == 0 ? size() : size_of_set(set), set == 0 ? rank() : rank_in(set));
    if (!fault.empty()) refuse(asked.kind, asked.name, fault);
    // Prepared tensors are marked when they are started.
    auto const tensors = what->tensors();
    bool const on_device =
        std::any_of(tensors.begin(), tensors.end(), [](auto const& each) { return each.in.where == memory_kind::device; });
    if (on_device && asked.kind != exchange_kind::prepare) what->gpu = core_->mark(asked.kind, asked.name, call.stream);
    core_->submit(what);
    return {*what, core_};
}

exchange_handle exchange::allreduce(std::string_view name, tensor_view in, tensor_view out, reduction how,
                                    exchange_call const& call) {
    check_name(exchange_kind::allreduce, name, call.set);
    compressible f32;
    f32.add(in);
    auto const wire = choose_wire(core_->options(), call, how, f32);
    if (!wire.fault.empty()) refuse(exchange_kind::allreduce, name, wire.fault);
    detail::single_allreduce const what{
        name,      call.set,   how, call.scale, wire.wire, wire.error_feedback, call.shape ? *call.shape : flat_shape(in.count),
        {in, out}, call.stream};
    if (auto const fault = detail::fault_of(what); !fault.empty()) refuse(exchange_kind::allreduce, name, fault);
    auto const submitted = core_->submit(what);
    return {*submitted, core_};
}

exchange_handle exchange::allreduce_group(std::string_view name, std::span<named_tensor const> tensors, reduction how,
                                          exchange_call const& call) {
    return submit(group(exchange_kind::allreduce, name, tensors, how, call), call);
}

detail::pending_ptr exchange::group(exchange_kind kind, std::string_view name, std::span<named_tensor const> tensors,
                                    reduction how, exchange_call const& call) {
    if (tensors.empty()) refuse(kind, name, "the group has no tensors; give it one at least");
    compressible f32;
    for (auto const& each : tensors) f32.add(each.in);
    auto const wire = choose_wire(core_->options(), call, how, f32);
    if (!wire.fault.empty()) refuse(kind, name, wire.fault);
    auto made = many_tensors(kind, name, tensors, how, call);
    made.what->wire = wire.wire;
    made.what->error_feedback = wire.error_feedback;
    return std::move(made.one);
}

prepared_group exchange::prepare(std::string_view name, std::span<named_tensor const> tensors, reduction how,
                                 exchange_call const& call) {
    auto const asked = group(exchange_kind::prepare, name, tensors, how, call);
    auto const tensors_of = asked->many;
    auto started = std::make_shared<exchange_request>(*asked->what);
    started->kind = exchange_kind::allreduce;
    bool const on_device = std::any_of(tensors.begin(), tensors.end(), is_on_device);
    submit(asked).wait();
    return {core_, std::make_unique<detail::prepared const>(
                       detail::prepared{std::move(started), call.set, tensors_of, asked->bytes, on_device})};
}

exchange_handle exchange::allgather(std::string_view name, tensor_view in, tensor_view out, exchange_call const& call) {
    auto const made = one_tensor(exchange_kind::allgather, name, in, out, call);
    return submit(made.one, call);
}

exchange_handle exchange::broadcast(std::string_view name, tensor_view in, tensor_view out, int root, exchange_call const& call) {
    auto const made = one_tensor(exchange_kind::broadcast, name, in, out, call);
    made.what->root = root;
    return submit(made.one, call);
}

exchange_handle exchange::reducescatter(std::string_view name, tensor_view in, tensor_view out, reduction how,
                                        exchange_call const& call) {
    auto const made = one_tensor(exchange_kind::reducescatter, name, in, out, call);
    made.what->how = how;
    return submit(made.one, call);
}

exchange_handle exchange::allgather_group(std::string_view name, std::span<named_tensor const> tensors,
                                          exchange_call const& call) {
    return submit(parts(exchange_kind::allgather, name, tensors, reduction::sum, call), call);
}

exchange_handle exchange::reducescatter_group(std::string_view name, std::span<named_tensor const> tensors, reduction how,
                                              exchange_call const& call) {
    return submit(parts(exchange_kind::reducescatter, name, tensors, how, call), call);
}

/// Makes a group whose tensors have separate results.
detail::pending_ptr exchange::parts(exchange_kind kind, std::string_view name, std::span<named_tensor const> tensors,
                                    reduction how, exchange_call const& call) const {
    if (tensors.empty()) refuse(kind, name, "the group has no tensors; give it one at least");
    auto made = many_tensors(kind, name, tensors, how, call);
    made.one->parts.resize(tensors.size());
    made.one->has_extras = true;
    return std::move(made.one);
}

exchange_handle exchange::alltoall(std::string_view name, tensor_view in, std::span<std::int64_t const> splits, tensor_view out,
                                   exchange_call const& call) {
    auto const made = one_tensor(exchange_kind::alltoall, name, in, out, call);
    made.what->numbers.assign(splits.begin(), splits.end());
    if (splits.empty()) {
        int const ranks = call.set == 0 ? size() : size_of_set(call.set);
        std::int64_t const rows = made.what->tensors.front().shape.rows();
        if (rows % ranks != 0)
            refuse(exchange_kind::alltoall, name, fmt::format("{} rows do not divide by {} ranks; give splits", rows, ranks));
        made.what->numbers.assign(static_cast<std::size_t>(ranks), rows / ranks);
    }
    return submit(made.one, call);
}

exchange_handle exchange::barrier(int set) {
    auto const turn = core_->next_turn(exchange_kind::barrier, set);
    if (turn.before) exchange_handle(*turn.before, core_).wait();
    return submit(draft(exchange_kind::barrier, turn.name, set).one);
}

exchange_handle exchange::join(int set) {
    return submit(draft(exchange_kind::join, join_name, set).one);
}

void exchange::check_ranks(std::span<int const> ranks) const {
    std::vector<int> sorted(ranks.begin(), ranks.end());
    std::sort(sorted.begin(), sorted.end());
    bool const wrong = ranks.empty() || sorted.front() < 0 || sorted.back() >= size() ||
                       std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
    if (wrong)
        throw comm_error(errc::usage, fmt::format("process set ({}): its ranks must be distinct and lie in 0 … {}",
                                                  speaker(who()), size() - 1));
}

int exchange::add_process_set(std::span<int const> ranks) {
    check_ranks(ranks);
    draft const made(exchange_kind::include, core_->next_turn(exchange_kind::include, 0).name, 0);
    made.what->numbers.assign(ranks.begin(), ranks.end());
    auto const handle = submit(made.one);
    handle.wait();
    return handle.number();
}

int exchange::make_process_set(std::span<int const> ranks, std::string_view name) {
    check_ranks(ranks);
    if (std::find(ranks.begin(), ranks.end(), rank()) == ranks.end())
        throw comm_error(
            errc::usage,
            fmt::format("process set \"{}\" ({}): this rank is not among its ranks; only they call this", name, speaker(who())));
    draft const made(exchange_kind::make_set, fmt::format("{}\"{}\" whose first rank is {}", internal_name, name, ranks.front()),
                     0);
    made.what->numbers.assign(ranks.begin(), ranks.end());
    auto const handle = submit(made.one);
    handle.wait();
    return handle.number();
}

void exchange::remove_process_set(int set) {
    if (set == 0)
        throw comm_error(errc::usage,
                         fmt::format("process set 0 ({}) is all ranks and is not removed; end the exchange", speaker(who())));
    auto const parties = core_->close_set(set);
    try {
        draft const made(exchange_kind::remove_set, fmt::format("{}{}", internal_name, set), 0);
        made.what->root = set;
        made.what->numbers.assign(parties.begin(), parties.end());
        submit(made.one).wait();
    } catch (...) {
        core_->reopen_set(set);
        throw;
    }
}

exchange_handle exchange::send(tensor_view what, int peer, int tag, exchange_call const& call) {
    return message(what, peer, tag, true, call);
}

exchange_handle exchange::receive(tensor_view into, int peer, int tag, exchange_call const& call) {
    return message(into, peer, tag, false, call);
}

/// Makes a request whose tensor is `in` on both ranks, though one of them writes to it.
exchange_handle exchange::message(tensor_view const& tensor, int peer, int tag, bool sends, exchange_call const& call) {
    int const own = call.set == 0 ? rank() : rank_in(call.set);
    int const from = sends ? own : peer, to = sends ? peer : own;
    std::string const name = fmt::format("{}from rank {} to rank {} with tag {}", internal_name, from, to, tag);
    auto const made = one_tensor(exchange_kind::message, name, tensor, {}, {.set = call.set});
    made.what->root = from;
    made.what->numbers = {from, to};
    check_name(exchange_kind::message, name, call.set);
    auto const fault = detail::fault_of(*made.one, call.set == 0 ? size() : size_of_set(call.set), own);
    if (!fault.empty()) refuse(exchange_kind::message, name, fault);
    made.what->name += fmt::format(" (number {})", core_->count_message(call.set, peer, tag, sends));
    if (!sends) made.one->result = tensor;
    return submit(made.one, call);
}

comm_buffer exchange::allocate(std::size_t bytes) {
    return core_->allocate(bytes);
}

int exchange::rank_in(int set) const {
    auto const members = core_->members(set);
    auto const found = std::find(members.begin(), members.end(), rank());
    return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

int exchange::size_of_set(int set) const {
    return static_cast<int>(core_->members(set).size());
}

void exchange::start_timeline(std::string const& folder, bool mark_cycles) {
    core_->check_process();
    core_->trace.start(folder, core_->offset, mark_cycles);
}
void exchange::start_timeline_file(std::string const& path, bool mark_cycles) {
    core_->check_process();
    core_->trace.start_file(path, core_->offset, mark_cycles);
}
void exchange::stop_timeline() {
    core_->check_process();
    core_->trace.stop();
}

counter_values exchange::count() const noexcept {
    auto values = core_->count.values();
    values.timeline_dropped = core_->trace.dropped();
    return values;
}

flight_dump exchange::dump() const {
    return core_->dump();
}

}  // namespace muster
