#include "comm/exchange/request/pending_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "comm/backend/argument_checks.hpp"

namespace muster::detail {

namespace {

std::string fault_of_view(tensor_view const& view, char const* role) {
    if (size_of(view.type) == 0) return fmt::format("\"{}\" has the unknown type {}", role, static_cast<int>(view.type));
    return fault_of_memory(view, role);
}

bool is_reduced(exchange_kind kind) {
    return kind == exchange_kind::allreduce || kind == exchange_kind::reducescatter || kind == exchange_kind::prepare;
}

bool has_one_size(exchange_kind kind) {
    return kind == exchange_kind::allreduce || kind == exchange_kind::broadcast || kind == exchange_kind::prepare;
}

/// The rules of a call for all its tensors.
struct call_rules {
    exchange_kind kind = exchange_kind::allreduce;
    reduction how = reduction::sum;
    scaling scale{};
};

std::string fault_of_scale(scaling const& scale) {
    if (std::isfinite(scale.before) && std::isfinite(scale.after)) return {};
    return fmt::format("the factors {} and {} are not both finite", scale.before, scale.after);
}

std::string fault_of_tensor(call_rules const& what, tensor_shape const& shape, tensor_io const& io) {
    if (auto fault = fault_of_view(io.in, "in"); !fault.empty()) return fault;
    if (static_cast<std::size_t>(shape.elements()) != io.in.count)
        return fmt::format("the shape {} has {} elements, \"in\" {}", to_string(shape), shape.elements(), io.in.count);
    bool const same_size = has_one_size(what.kind);
    bool const has_out = io.out.data != nullptr || (same_size && io.in.count != 0);
    if (has_out) {
        if (auto fault = fault_of_view(io.out, "out"); !fault.empty()) return fault;
        if (io.out.type != io.in.type)
            return fmt::format("\"in\" is {}, \"out\" is {}", to_string(io.in.type), to_string(io.out.type));
        if (io.out.where != io.in.where)
            return fmt::format("\"in\" lies in {} memory, \"out\" in {}", to_string(io.in.where), to_string(io.out.where));
        if (same_size && io.out.count != io.in.count)
            return fmt::format("\"in\" has {} elements, \"out\" {}", io.in.count, io.out.count);
        if ((!same_size || io.out.data != io.in.data) && overlap(io.in, io.out))
            return "\"in\" and \"out\" overlap; give the same memory twice where that is allowed, or apart";
    }
    if (!is_reduced(what.kind)) return {};
    if (is_only_moved(io.in.type))
        return fmt::format("{} is gathered, broadcast and sent, but not reduced; convert it", to_string(io.in.type));
    if (is_floating(io.in.type)) return {};
    if (what.how == reduction::average || what.how == reduction::adasum)
        return fmt::format("{} of {} is not an integer; reduce the sum, or convert", to_string(what.how), to_string(io.in.type));
    if (!what.scale.is_one()) return fmt::format("{} cannot be scaled; convert to a floating type", to_string(io.in.type));
    return {};
}

std::string fault_of_share(tensor_shape const& shape, tensor_view const& out, int ranks, int rank) {
    auto const rows = static_cast<std::size_t>(shape.rows());
    auto const share = share_of(rows, ranks, rank).count * static_cast<std::size_t>(shape.row_elements());
    if (out.data == nullptr || out.count == share) return {};
    return fmt::format("\"out\" has {} elements and this rank's share of {} is {}", out.count, to_string(shape), share);
}

std::string fault_of_message(exchange_request const& what, memory_kind where, int ranks, int rank) {
    auto const peer = what.numbers.at(what.root == rank ? 1 : 0);
    if (peer < 0 || peer >= ranks) return fmt::format("rank {} does not lie in a set of {}", peer, ranks);
    if (peer == rank) return "a rank has no messages for itself; copy";
    if (where != memory_kind::host) return "messages are for host memory; copy the tensor there";
    return {};
}

/// Returns the beginning of a message that names a group's tensor.
std::string prefix_of(exchange_request const& what, tensor_spec const& tensor) {
    return what.tensors.size() == 1 ? std::string{} : fmt::format("tensor \"{}\": ", tensor.name);
}

/// A piece of memory of a group's tensor.
struct used_memory {
    std::uintptr_t begin = 0, end = 0;
    std::size_t tensor = 0;
    bool is_written = false;
};

/// Returns the memory of all of them, sorted by its beginning. What is reduced in place counts once.
std::vector<used_memory> memory_of(std::span<tensor_io const> tensors) {
    std::vector<used_memory> all;
    all.reserve(2 * tensors.size());
    auto const add = [&](tensor_view const& view, std::size_t tensor, bool is_written) {
        auto const begin = reinterpret_cast<std::uintptr_t>(view.data);
        if (begin != 0 && view.count != 0) all.push_back({begin, begin + view.bytes(), tensor, is_written});
    };
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i].in.data != tensors[i].out.data) add(tensors[i].in, i, false);
        add(tensors[i].out, i, true);
    }
    std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.begin < b.begin; });
    return all;
}

/// Finds tensors that share memory in a group whose tensors are each right: reduced one after the other or all together, they
/// would give different results.
std::string fault_of_sharing(exchange_request const& what, std::span<tensor_io const> tensors) {
    if (tensors.size() < 2) return {};
    used_memory any, written;  // those that reach farthest
    for (used_memory const& each : memory_of(tensors)) {
        used_memory const& before = each.is_written ? any : written;
        if (each.begin < before.end)
            return fmt::format(
                "the tensors \"{}\" and \"{}\" share memory at {:#x}, and at least one is written there; give them apart",
                what.tensors[std::min(each.tensor, before.tensor)].name, what.tensors[std::max(each.tensor, before.tensor)].name,
                each.begin);
        if (each.end > any.end) any = each;
        if (each.is_written && each.end > written.end) written = each;
    }
    return {};
}

std::string fault_of_splits(exchange_request const& what, int ranks) {
    if (what.numbers.size() != static_cast<std::size_t>(ranks))
        return fmt::format("{} splits for {} ranks; give one for each", what.numbers.size(), ranks);
    std::int64_t sum = 0;
    std::int64_t const rows = what.tensors.front().shape.rows();
    for (std::int64_t const each : what.numbers) {
        if (each < 0 || each > rows) return fmt::format("the split {} of {} rows", each, rows);
        sum += each;
    }
    return sum == rows ? std::string{} : fmt::format("the splits sum to {}, the tensor has {} rows", sum, rows);
}

}  // namespace

std::string fault_of(single_allreduce const& what) {
    if (auto fault = fault_of_tensor({exchange_kind::allreduce, what.how, what.scale}, what.shape, what.io); !fault.empty())
        return fault;
    return fault_of_scale(what.scale);
}

std::string fault_of(pending_request const& what, int ranks, int rank) {
    exchange_request const& asked = *what.what;
    auto const tensors = what.tensors();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        auto fault = fault_of_tensor({asked.kind, asked.how, asked.scale}, asked.tensors[i].shape, tensors[i]);
        if (!fault.empty()) return prefix_of(asked, asked.tensors[i]) + fault;
    }
    if (auto fault = fault_of_sharing(asked, tensors); !fault.empty()) return fault;
    if (auto fault = fault_of_scale(asked.scale); !fault.empty()) return fault;
    bool const has_rows = asked.kind == exchange_kind::allgather || asked.kind == exchange_kind::alltoall ||
                          asked.kind == exchange_kind::reducescatter;
    for (auto const& each : asked.tensors)
        if (has_rows && each.shape.dimensions == 0)
            return fmt::format("{}a scalar has no rows; give it a shape of one dimension", prefix_of(asked, each));
    if (asked.kind == exchange_kind::reducescatter) {
        if (asked.how == reduction::adasum) return "adasum is there for allreduce only";
        for (std::size_t i = 0; i < tensors.size(); ++i)
            if (auto fault = fault_of_share(asked.tensors[i].shape, tensors[i].out, ranks, rank); !fault.empty())
                return prefix_of(asked, asked.tensors[i]) + fault;
    }
    if (asked.kind == exchange_kind::message) return fault_of_message(asked, tensors.front().in.where, ranks, rank);
    if (asked.kind == exchange_kind::broadcast && (asked.root < 0 || asked.root >= ranks))
        return fmt::format("the root {} does not lie in a set of {}", asked.root, ranks);
    if (asked.kind == exchange_kind::alltoall) return fault_of_splits(asked, ranks);
    return {};
}

pending_ptr& name_table::last(int set, std::string_view name) {
    auto const index = static_cast<std::size_t>(set);
    if (index >= by_set_.size()) by_set_.resize(index + 1);
    names_of_set& names = by_set_[index];
    if (auto const found = names.requests.find(name); found != names.requests.end()) return found->second;
    if (names.requests.size() >= names.room) sweep(names);
    return names.requests.try_emplace(std::string(name)).first->second;
}

void name_table::forget(int set) {
    auto const index = static_cast<std::size_t>(set);
    if (index < by_set_.size()) by_set_[index] = {};
}

/// Forgets names not used since the sweep before: names in use stay, and each costs a few comparisons in all.
void name_table::sweep(names_of_set& names) {
    auto const since = std::exchange(names.last_sweep, exchange_clock::now());
    std::erase_if(names.requests,
                  [&](auto const& each) { return !each.second || (!is_waiting(each.second) && each.second->submitted < since); });
    names.room = std::max<std::size_t>(4096, 2 * names.requests.size());
}

namespace {

/// Returns whether an earlier request is the same as this one.
bool is_same(pending_request const& before, single_allreduce const& now) {
    exchange_request const& what = *before.what;
    if (what.kind != exchange_kind::allreduce || before.many || what.tensors.size() != 1) return false;
    tensor_spec const& spec = what.tensors.front();
    return what.how == now.how && what.scale == now.scale && what.wire == now.wire && what.error_feedback == now.error_feedback &&
           spec.type == now.io.in.type && spec.where == now.io.in.where && spec.shape == now.shape;
}

}  // namespace

pending_ptr pending_ptr::make() {
    return pending_ptr(new pending_request);
}

pending_ptr pending_ptr::make_internal(exchange_kind kind, std::string_view name, int set) {
    auto what = std::make_shared<exchange_request>();
    what->kind = kind;
    what->name = name;
    auto made = make();
    made->what = std::move(what);
    made->set = set;
    made->submitted = exchange_clock::now();
    return made;
}

void pending_ptr::hold(pending_request* of) noexcept {
    if (of != nullptr) of->owners.fetch_add(1, std::memory_order_relaxed);
}

void pending_ptr::release(pending_request* of) noexcept {
    if (of->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete of;
}

void pending_request::use_again() noexcept {
    state.store(phase::waiting, std::memory_order_relaxed);
    waited.store(false, std::memory_order_relaxed);
    has_calls.store(false, std::memory_order_relaxed);
    deadline.store(0, std::memory_order_relaxed);
    stall_told = false;
    parts.clear();  // before the device, on which part of it may lie
    if (gpu) gpu.reset();
    handed.store(false, std::memory_order_relaxed);
    if (!has_extras) return;
    has_extras = false;
    code = errc::peer_failed;
    fault.clear();
    culprits.clear();
    memory.reset();
    rows.clear();
    number = 0;
}

shared_request request_of(single_allreduce const& from, pending_ptr const& last) {
    if (last && is_same(*last, from)) return last->what;
    auto made = std::make_shared<exchange_request>();
    made->name = from.name;
    made->how = from.how;
    made->scale = from.scale;
    made->wire = from.wire;
    made->error_feedback = from.error_feedback;
    made->tensors.push_back({{}, from.io.in.type, from.io.in.where, from.shape});  // the request has the name
    made->places.push_back(reinterpret_cast<std::uint64_t>(from.io.in.data));
    return made;
}

pending_ptr next_after(pending_ptr& last, shared_request what) {
    bool const repeats = last && last->what == what;
    if (repeats && last->owners.load(std::memory_order_acquire) == 1) {
        last->use_again();
        return last;
    }
    pending_ptr next = pending_ptr::make();
    next->what = std::move(what);
    if (repeats) next->cache_place = last->cache_place;
    last = next;
    return next;
}

}  // namespace muster::detail
