// The context that all parts of an exchange share: options, counters, recorders, residuals.
#pragma once

#include <string>
#include <vector>

#include "comm/exchange/batch/residuals.hpp"
#include "comm/exchange/observe/counters.hpp"
#include "comm/exchange/observe/flight_recorder.hpp"
#include "comm/exchange/observe/timeline.hpp"
#include "comm/exchange/request/exchange_options.hpp"
#include "comm/exchange/request/pending_request.hpp"
#include "comm/exchange/request/request_waiters.hpp"

namespace muster::detail {

/// Why nothing more can be done.
struct failure_text {
    errc code = errc::peer_failed;
    std::string message;
    std::vector<int> culprits;
};

struct exchange_context {
    exchange_options options;
    counters& count;
    flight_recorder& recorder;
    timeline& trace;
    residuals& lost;
    gpu_access& gpu;
    device_residuals& lost_on_device;
    request_waiters& finished;
};

/// Marks a request as failed; those who wait do not know yet.
inline void set_failed(pending_request& one, errc code, std::string const& fault, std::vector<int> const& culprits) {
    one.code = code;
    one.fault = fault;
    one.culprits = culprits;
    one.has_extras = true;
    one.state.store(pending_request::phase::failed, std::memory_order_release);
}

/// Counts a request as ended, well or (through this rank's fault) not; those who wait do not know yet.
inline void complete(pending_request& unit, counters& count) {
    counters::add(count.operations[static_cast<std::size_t>(unit.what->kind)]);
    bool const failed = unit.has_extras && !unit.fault.empty();
    if (failed) counters::add(count.errors);
    unit.state.store(failed ? pending_request::phase::failed : pending_request::phase::done, std::memory_order_release);
}

}  // namespace muster::detail
