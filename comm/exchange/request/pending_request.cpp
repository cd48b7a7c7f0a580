#include "comm/exchange/request/pending_request.hpp"

namespace muster::detail {

pending_ptr pending_ptr::make() {
    return pending_ptr(new pending_request);
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

}  // namespace muster::detail
