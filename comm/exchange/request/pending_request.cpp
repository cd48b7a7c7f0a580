#include "comm/exchange/request/pending_request.hpp"

#include <algorithm>

namespace muster::detail {

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

/// Forgets names that were not used since the sweep before: so names in use stay, and each costs a few comparisons in all.
void name_table::sweep(names_of_set& names) {
    auto const since = std::exchange(names.last_sweep, exchange_clock::now());
    std::erase_if(names.requests,
                  [&](auto const& each) { return !each.second || (!is_waiting(each.second) && each.second->submitted < since); });
    names.room = std::max<std::size_t>(4096, 2 * names.requests.size());
}

namespace {

/// Whether a request that was made is what is asked for now.
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
    parts.clear();  // before the device, on which some of it may lie
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
