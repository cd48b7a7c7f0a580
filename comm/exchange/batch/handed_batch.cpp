#include "comm/exchange/batch/handed_batch.hpp"

#include <new>

#include "comm/backend/keep_forever.hpp"

namespace muster::detail {

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
