// Moves of tensors into and out of a fusion buffer in device memory.
#pragma once

#include <optional>
#include <vector>

#include "comm/exchange/batch/device_lane.hpp"

namespace muster::detail {

/// Tensors that go into a fusion buffer, or out of it: from[i] to to[i], times `factor`; with error feedback there is a residual
/// for each.
struct device_move {
    std::vector<tensor_view> from, to;
    double factor = 1;
    std::vector<tensor_view> residuals{};
    bool operator==(device_move const&) const = default;
};

/// Moves tensors on a lane's stream; kept, since tensors mostly lie where they lay before. The lane outlives it.
class device_mover {
  public:
    /// It is what was moved the last time: nothing is left to be prepared.
    bool repeats(device_move const& what) const { return what.from.empty() || what == last_; }

    /// Makes what is needed for it. Not while the device works on a batch: this can wait for the device. Without kernels only
    /// types that are the same, by a factor of 1. Throws errc::unavailable, cuda_error.
    void prepare(device_lane& lane, device_move what);

    /// Puts what was prepared on the stream. Throws cuda_error.
    void move(device_lane& lane);

  private:
    device_move last_;
    std::optional<cuda::fusion_launch> launch_;
};

/// The movers of a batch.
struct device_movers {
    device_mover pack, unpack;
};

}  // namespace muster::detail
