#include "comm/cuda/device.hpp"

#include <fmt/format.h>

#include <array>

#include "base/throw_error.hpp"

namespace muster::cuda {

std::string to_string(device_uuid const& uuid) {
    std::string text = "GPU";
    for (std::size_t i = 0; i < sizeof uuid.bytes; ++i)
        text += fmt::format("{}{:02x}", i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                            static_cast<unsigned char>(uuid.bytes[i]));
    return text;
}

std::shared_ptr<device const> device::open(found_driver const& found, int ordinal) {
    if (found.use == nullptr) throw error(errc::unavailable, found.why_not);
    if (ordinal < 0 || ordinal >= found.devices)
        throw_error(errc::placement, "there is no GPU {}: CUDA shows this process {}, counted from 0; see CUDA_VISIBLE_DEVICES",
                    ordinal, found.devices);
    driver const& with = *found.use;
    std::shared_ptr<device> const made(new device(with, ordinal));
    check(with, with.device_get(&made->handle_, ordinal), "cuDeviceGet");
    std::array<char, 256> name{};
    check(with, with.device_name(name.data(), static_cast<int>(name.size() - 1), made->handle_), "cuDeviceGetName");
    made->name_ = name.data();
    device_uuid uuid{};
    check(with, with.device_get_uuid(&uuid, made->handle_), "cuDeviceGetUuid");
    made->uuid_ = to_string(uuid);
    check(with, with.device_attribute(&made->multiprocessors_, attribute_multiprocessors, made->handle_), "cuDeviceGetAttribute");
    check(with, with.context_retain(&made->context_, made->handle_), "cuDevicePrimaryCtxRetain");
    return made;
}

device::~device() {
    if (context_ != nullptr) driver_->context_release(handle_);
}

device::scope::scope(device const& of) : driver_(*of.driver_) {
    check(driver_, driver_.context_push(of.context_), "cuCtxPushCurrent");
}

device::scope::~scope() {
    context_handle popped = nullptr;
    driver_.context_pop(&popped);
}

int choose_device(found_driver const& found, int asked, int local_rank) {
    if (found.use == nullptr) throw error(errc::unavailable, found.why_not);
    if (asked >= 0) {
        if (asked < found.devices) return asked;
        throw_error(errc::placement, "GPU {} was asked for, CUDA shows this process {}, counted from 0; see CUDA_VISIBLE_DEVICES",
                    asked, found.devices);
    }
    context_handle current = nullptr;
    int device = -1;
    if (found.use->context_current(&current) == success && current != nullptr && found.use->context_device(&device) == success &&
        device >= 0 && device < found.devices)
        return device;
    if (found.devices == 1) return 0;
    if (local_rank < found.devices) return local_rank;
    throw_error(errc::placement,
                "local rank {} finds {} GPUs; start one rank per GPU, or say which GPU is whose (comm_options::device)",
                local_rank, found.devices);
}

}  // namespace muster::cuda
