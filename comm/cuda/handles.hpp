// Owners of the CUDA driver's handles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/unique_handle.hpp"
#include "comm/cuda/device.hpp"

namespace muster::cuda {

/// A driver's handle with its device, which is necessary to release it and outlives it.
template <typename Handle>
struct owned {
    device const* of = nullptr;
    Handle handle{};
    bool operator==(owned const&) const = default;
};

/// Traits of unique_handle; `Release` calls the driver, with the context made current for that. Failures are ignored.
template <typename Handle, typename Release>
struct owned_traits {
    using type = owned<Handle>;
    static type null() noexcept { return {}; }
    static void close(type const& what) noexcept {
        try {
            device::scope const current(*what.of);
            Release{}(what.of->with(), what.handle);
        } catch (...) {  // the driver is shutting down: it releases everything itself
        }
    }
};

struct stream_release {
    void operator()(driver const& with, stream_handle stream) const noexcept { with.stream_destroy(stream); }
};
struct event_release {
    void operator()(driver const& with, event_handle event) const noexcept { with.event_destroy(event); }
};
struct memory_release {
    void operator()(driver const& with, device_address address) const noexcept { with.memory_free(address); }
};
struct pinned_release {
    void operator()(driver const& with, void* address) const noexcept { with.pinned_free(address); }
};
struct module_release {
    void operator()(driver const& with, module_handle module) const noexcept { with.module_unload(module); }
};
using unique_stream = unique_handle<owned_traits<stream_handle, stream_release>>;
using unique_event = unique_handle<owned_traits<event_handle, event_release>>;
using unique_memory = unique_handle<owned_traits<device_address, memory_release>>;
using unique_pinned = unique_handle<owned_traits<void*, pinned_release>>;
using unique_module = unique_handle<owned_traits<module_handle, module_release>>;

// Each of these makes one in the device's context, which it makes current meanwhile. All throw cuda_error. Memory is freed once the device is through with what
// it was given before: the driver waits for that.

/// Makes a stream that does not wait for the default stream, with the highest priority: late communication delays all ranks.
unique_stream make_stream(device const& on);
unique_event make_event(device const& on, bool timing = false);
unique_memory make_memory(device const& on, std::size_t bytes);  ///< bytes > 0; aligned to 256
unique_pinned make_pinned(device const& on, std::size_t bytes);  ///< the device copies from and to it by itself

// A pinned buffer is host memory that a GPU copies from and to by itself, without the processor.

/// Move-only. Keeps its GPU open.
class pinned_buffer {
  public:
    pinned_buffer() = default;

    /// Returns `bytes` of memory, aligned to a page, for the GPU that choose_device() chooses. Throws errc::unavailable if `found`
    /// has no GPU, errc::placement, cuda_error.
    static pinned_buffer allocate(found_driver const& found, std::size_t bytes, int local_rank);

    std::span<std::uint8_t> bytes() const noexcept { return bytes_; }

  private:
    std::shared_ptr<device const> on_;  // before whatever is on it
    unique_pinned memory_;
    std::span<std::uint8_t> bytes_;
};

/// Returns whether the calling thread has a context on a GPU, as it has once its framework has used one. Loads and starts
/// nothing.
bool uses_gpu() noexcept;

}  // namespace muster::cuda
