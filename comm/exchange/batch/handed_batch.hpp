// A batch of which the device knows all: the rest is to ask whether the device has finished.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/exchange/batch/device_lane.hpp"
#include "comm/exchange/request/pending_request.hpp"

namespace muster::detail {

/// A request that ends with a batch, and its place in the flight recorder.
struct ending_unit {
    pending_ptr what;  ///< null where this rank has joined
    std::uint64_t record = 0;
};

struct handed_batch {
    operation under_way;
    std::shared_ptr<cuda::unique_event const> finished;  ///< behind the results
    std::string label;
    exchange_kind kind = exchange_kind::allreduce;
    std::size_t bytes = 0;
    exchange_clock::time_point began;
    std::vector<std::vector<std::byte>> read_by_device;
    std::vector<ending_unit> ends;

    /// True once the device has finished. Throws what the communicator throws.
    bool done(device_lane& lane);
    /// The ranks have failed: memory that the device may still write to is never freed.
    void leak() noexcept;
};

/// Memory that the device may still write to is never freed.
void keep_device_memory(pending_request& of) noexcept;

/// Whether the device has come to this event. Throws cuda_error.
bool has_passed(device_lane& lane, cuda::unique_event const& event);

}  // namespace muster::detail
