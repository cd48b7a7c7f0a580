// The context that all parts of an exchange share: options, counters, recorders, residuals.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "comm/backend/wait_counts.hpp"
#include "comm/cuda/handles.hpp"
#include "comm/exchange/observe/counters.hpp"
#include "comm/exchange/observe/flight_recorder.hpp"
#include "comm/exchange/observe/timeline.hpp"
#include "comm/exchange/request/exchange_options.hpp"
#include "comm/exchange/request/pending_request.hpp"
#include "comm/exchange/request/request_waiters.hpp"

namespace muster::detail {

// Residuals keep what rounding loses, tensor by tensor.

/// Writes a residual's name, which differs between process sets and between requests.
void name_residual(std::string& into, int set, std::string_view request, std::string_view tensor);

/// The residuals of compressed allreduces with error feedback. Not thread safe.
class residuals {
  public:
    /// Returns the residual of a request's tensor: zeros the first time, and when its number of elements has changed. Valid until
    /// the next call for the same tensor.
    std::span<float> of(int set, std::string_view request, std::string_view tensor, std::size_t count);
    /// Forgets those of a removed set.
    void forget(int set);

  private:
    std::unordered_map<std::string, std::vector<float>> by_name_;
    std::string key_;  // kept for its memory
};

/// The same in device memory. Not thread safe.
class device_residuals {
  public:
    /// Returns null unless there is one with this number of elements.
    float* find(int set, std::string_view request, std::string_view tensor, std::size_t count);
    /// Creates it if it is missing, zeroed on `stream`. Asks the driver for memory: see device_batch. Throws cuda_error.
    void make(int set, std::string_view request, std::string_view tensor, std::size_t count,
              std::shared_ptr<cuda::device const> const& on, cuda::stream_handle stream);
    /// Forgets those of a removed set, when the device no longer uses them.
    void forget(int set);

  private:
    struct entry {
        std::shared_ptr<cuda::device const> on;  // before what is on it
        cuda::unique_memory memory;
        std::size_t count = 0;
    };
    std::unordered_map<std::string, entry> by_name_;
    std::string key_;  // kept for its memory
};

/// The reason why nothing more can be done.
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
    std::shared_ptr<wait_counts> waits;                ///< null: waits are not counted
    exchange_clock::time_point waits_counted_until{};  ///< by the exchange's thread
};

/// Marks a request as failed; does not wake those who wait.
inline void set_failed(pending_request& one, errc code, std::string const& fault, std::vector<int> const& culprits) {
    one.code = code;
    one.fault = fault;
    one.culprits = culprits;
    one.has_extras = true;
    one.state.store(pending_request::phase::failed, std::memory_order_release);
}

/// Counts a request as ended, well or through this rank's fault not; does not wake those who wait.
inline void complete(pending_request& unit, counters& count) {
    counters::add(count.operations[static_cast<std::size_t>(unit.what->kind)]);
    bool const failed = unit.has_extras && !unit.fault.empty();
    if (failed) counters::add(count.errors);
    unit.state.store(failed ? pending_request::phase::failed : pending_request::phase::done, std::memory_order_release);
}

}  // namespace muster::detail
