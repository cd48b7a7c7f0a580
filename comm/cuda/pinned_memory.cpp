#include "comm/cuda/pinned_memory.hpp"

#include <dlfcn.h>

#include "base/error.hpp"

namespace muster::cuda {

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
