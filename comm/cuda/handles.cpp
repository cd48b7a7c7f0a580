#include <dlfcn.h>

#include "base/error.hpp"
#include "comm/cuda/handles.hpp"

namespace muster::cuda {

unique_stream make_stream(device const& on) {
    device::scope const current(on);
    driver const& with = on.with();
    int least = 0, greatest = 0;
    check(with, with.stream_priorities(&least, &greatest), "cuCtxGetStreamPriorityRange");
    stream_handle stream = nullptr;
    check(with, with.stream_create(&stream, stream_non_blocking, greatest), "cuStreamCreateWithPriority");
    return unique_stream({&on, stream});
}

unique_event make_event(device const& on, bool timing) {
    device::scope const current(on);
    event_handle event = nullptr;
    check(on.with(), on.with().event_create(&event, timing ? event_with_timing : event_without_timing), "cuEventCreate");
    return unique_event({&on, event});
}

unique_memory make_memory(device const& on, std::size_t bytes) {
    device::scope const current(on);
    device_address address = 0;
    check(on.with(), on.with().memory_alloc(&address, bytes), "cuMemAlloc");
    return unique_memory({&on, address});
}

unique_pinned make_pinned(device const& on, std::size_t bytes) {
    device::scope const current(on);
    void* address = nullptr;
    check(on.with(), on.with().pinned_alloc(&address, bytes), "cuMemAllocHost");
    return unique_pinned({&on, address});
}

pinned_buffer pinned_buffer::allocate(found_driver const& found, std::size_t bytes, int local_rank) {
    if (found.use == nullptr) throw error(errc::unavailable, "pinned memory: " + found.why_not);
    pinned_buffer made;
    made.on_ = device::open(found, choose_device(found, -1, local_rank));
    if (bytes == 0) return made;
    made.memory_ = make_pinned(*made.on_, bytes);
    made.bytes_ = {static_cast<std::uint8_t*>(made.memory_.get().handle), bytes};
    return made;
}

bool uses_gpu() noexcept {
    void* const library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return false;
    auto const current = reinterpret_cast<int (*)(context_handle*)>(::dlsym(library, "cuCtxGetCurrent"));
    context_handle context = nullptr;
    bool const uses = current != nullptr && current(&context) == success && context != nullptr;
    ::dlclose(library);
    return uses;
}

}  // namespace muster::cuda
