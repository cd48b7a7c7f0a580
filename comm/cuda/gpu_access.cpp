#include "comm/cuda/gpu_access.hpp"

namespace muster::detail {

std::shared_ptr<cuda::device const> gpu_access::open() {
    std::scoped_lock const lock(guard_);
    if (!device_) {
        auto const& found = cuda::find_driver();
        device_ = cuda::device::open(found, cuda::choose_device(found, asked_, local_rank_));
    }
    return device_;
}

std::unique_ptr<device_part> gpu_access::mark(void* stream) {
    auto made = std::make_unique<device_part>();
    made->on = open();
    {
        std::scoped_lock const lock(guard_);
        if (!spare_.empty()) {
            made->given = std::move(spare_.back());
            spare_.pop_back();
        }
    }
    if (!made->given) made->given = cuda::make_event(*made->on);
    cuda::device::scope const current(*made->on);
    cuda::driver const& with = made->on->with();
    cuda::check(with, with.event_record(made->given.get().handle, static_cast<cuda::stream_handle>(stream)), "cuEventRecord");
    return made;
}

void gpu_access::take_back(cuda::unique_event given) {
    std::scoped_lock const lock(guard_);
    spare_.push_back(std::move(given));
}

}  // namespace muster::detail
