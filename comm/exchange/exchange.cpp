#include "comm/exchange/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "comm/comm_error.hpp"
#include "comm/exchange/internal/call_checks.hpp"
#include "comm/exchange/internal/exchange_core.hpp"

namespace muster {

using detail::exchange_clock;
using detail::pending;

namespace {

std::shared_ptr<pending> make_request(exchange_kind kind, std::string_view name, int set) {
    auto what = std::make_shared<pending>();
    what->what.kind = kind;
    what->what.name = name;
    what->set = set;
    return what;
}

void add_tensor(pending& to, std::string_view name, tensor_view const& in, tensor_view const& out,
                std::optional<tensor_shape> const& shape) {
    to.what.tensors.push_back({std::string(name), in.type, in.where, shape ? *shape : flat_shape(in.count)});
    to.what.places.push_back(reinterpret_cast<std::uint64_t>(in.data));
    to.tensors.push_back({in, out});
}

std::shared_ptr<pending> one_tensor(exchange_kind kind, std::string_view name, tensor_view const& in, tensor_view const& out,
                                    exchange_call const& call) {
    auto what = make_request(kind, name, call.set);
    what->what.scale = call.scale;
    what->what.tensors.reserve(1);
    add_tensor(*what, {}, in, out, call.shape);  // the request has the name
    what->result = out;
    return what;
}

}  // namespace

exchange::exchange(identity const& who, exchange_options const& options)
    : core_(std::make_shared<detail::exchange_core>(who, options)) {}

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

exchange_handle exchange::submit(std::shared_ptr<pending> what) {
    auto const fail = [&](std::string const& fault) {
        throw comm_error(errc::usage, fmt::format("{} (rank {} of {} on {}): {}", describe(what->what.kind, what->what.name),
                                                  rank(), size(), who().host, fault));
    };
    bool const is_own = !what->what.name.empty() && what->what.name.front() == internal_name;
    if (what->what.name.empty()) fail("it has no name; tensors meet by name");
    if (!is_own && what->what.name.find(internal_name) == 0) fail("a name must not begin with the byte 1");
    int const place = what->set == 0 ? rank() : rank_in(what->set);
    if (place < 0) fail(fmt::format("this rank is not a member of process set {}", what->set));
    auto const fault = detail::fault_of(*what, what->set == 0 ? size() : size_of_set(what->set), place);
    if (!fault.empty()) fail(fault);
    what->submitted = exchange_clock::now();
    duration const deadline = core_->options().deadline;
    if (deadline.count() > 0)
        what->deadline =
            (what->submitted + std::chrono::duration_cast<exchange_clock::duration>(deadline)).time_since_epoch().count();
    exchange_handle handle(what, core_);
    core_->submit(std::move(what));
    return handle;
}

exchange_handle exchange::allreduce(std::string_view name, tensor_view in, tensor_view out, exchange_reduction how,
                                    exchange_call const& call) {
    auto what = one_tensor(exchange_kind::allreduce, name, in, out, call);
    what->what.how = how;
    return submit(std::move(what));
}

exchange_handle exchange::allreduce_group(std::string_view name, std::span<named_tensor const> tensors, exchange_reduction how,
                                          exchange_call const& call) {
    auto what = make_request(exchange_kind::allreduce, name, call.set);
    what->what.scale = call.scale;
    what->what.how = how;
    what->what.tensors.reserve(tensors.size());
    what->what.places.reserve(tensors.size());
    what->tensors.reserve(tensors.size());
    for (auto const& each : tensors) add_tensor(*what, each.name, each.in, each.out, each.shape);
    if (tensors.empty())
        throw comm_error(errc::usage, fmt::format("{} (rank {} of {} on {}): a group of no tensors",
                                                  describe(exchange_kind::allreduce, name), rank(), size(), who().host));
    return submit(std::move(what));
}

exchange_handle exchange::allgather(std::string_view name, tensor_view in, tensor_view out, exchange_call const& call) {
    return submit(one_tensor(exchange_kind::allgather, name, in, out, call));
}

exchange_handle exchange::broadcast(std::string_view name, tensor_view in, tensor_view out, int root, exchange_call const& call) {
    auto what = one_tensor(exchange_kind::broadcast, name, in, out, call);
    what->what.root = root;
    return submit(std::move(what));
}

exchange_handle exchange::reducescatter(std::string_view name, tensor_view in, tensor_view out, exchange_reduction how,
                                        exchange_call const& call) {
    auto what = one_tensor(exchange_kind::reducescatter, name, in, out, call);
    what->what.how = how;
    return submit(std::move(what));
}

exchange_handle exchange::alltoall(std::string_view name, tensor_view in, std::span<std::int64_t const> splits, tensor_view out,
                                   exchange_call const& call) {
    auto what = one_tensor(exchange_kind::alltoall, name, in, out, call);
    what->what.numbers.assign(splits.begin(), splits.end());
    if (splits.empty()) {
        int const ranks = call.set == 0 ? size() : size_of_set(call.set);
        std::int64_t const rows = what->what.tensors.front().shape.rows();
        if (rows % ranks != 0)
            throw comm_error(errc::usage,
                             fmt::format("{} (rank {} of {} on {}): {} rows do not divide by {} ranks; give splits",
                                         describe(exchange_kind::alltoall, name), rank(), size(), who().host, rows, ranks));
        what->what.numbers.assign(static_cast<std::size_t>(ranks), rows / ranks);
    }
    return submit(std::move(what));
}

exchange_handle exchange::barrier(int set) {
    return submit(make_request(exchange_kind::barrier, core_->free_name(exchange_kind::barrier, set), set));
}

exchange_handle exchange::join(int set) {
    return submit(make_request(exchange_kind::join, join_name, set));
}

int exchange::add_process_set(std::span<int const> ranks) {
    auto what = make_request(exchange_kind::include, core_->free_name(exchange_kind::include, 0), 0);
    std::vector<int> sorted(ranks.begin(), ranks.end());
    std::sort(sorted.begin(), sorted.end());
    bool const wrong = ranks.empty() || sorted.front() < 0 || sorted.back() >= size() ||
                       std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
    if (wrong)
        throw comm_error(errc::usage, fmt::format("process set (rank {} of {} on {}): its ranks are distinct and lie in 0 … {}",
                                                  rank(), size(), who().host, size() - 1));
    what->what.numbers.assign(ranks.begin(), ranks.end());
    auto const handle = submit(std::move(what));
    handle.wait();
    return handle.number();
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
    core_->trace.start(folder, core_->offset, mark_cycles);
}
void exchange::stop_timeline() {
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

bool exchange::is_static() const noexcept {
    return core_->is_static();
}

}  // namespace muster
