#include "comm/exchange/batch/device_mover.hpp"

#include <fmt/format.h>

#include <bit>

#include "comm/backend/comm_error.hpp"

namespace muster::detail {

void device_mover::prepare(device_lane& lane, device_move what) {
    last_ = {};  // should anything below throw
    bool const converts = what.factor != 1 || (!what.from.empty() && what.from.front().type != what.to.front().type);
    if (!lane.kernels && converts)
        throw comm_error(
            errc::unavailable,
            fmt::format("compression on {} needs kernels, which could not be loaded; give compression none", lane.on->name()));
    if (lane.kernels && !what.from.empty()) {
        if (!launch_) launch_.emplace(lane.kernels);
        launch_->prepare(what.from, what.to, what.factor, lane.queue(), 0, what.residuals);
    }
    last_ = std::move(what);
}

void device_mover::move(device_lane& lane) {
    if (lane.kernels && !last_.from.empty()) return launch_->run(lane.queue());
    for (std::size_t i = 0; i < last_.from.size(); ++i)
        if (last_.from[i].count != 0)
            lane.check(lane.on->with().copy_device_to_device(std::bit_cast<cuda::device_address>(last_.to[i].data),
                                                             std::bit_cast<cuda::device_address>(last_.from[i].data),
                                                             last_.from[i].bytes(), lane.queue()),
                       "cuMemcpyDtoDAsync");
}

}  // namespace muster::detail
