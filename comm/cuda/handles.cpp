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

}  // namespace muster::cuda
