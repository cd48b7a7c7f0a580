#include "bench/collectives/collectives_memory.hpp"

#include <algorithm>
#include <bit>

namespace muster {

std::string_view to_string(memory_of_tensors memory) noexcept {
    switch (memory) {
        case memory_of_tensors::plain: return "plain";
        case memory_of_tensors::allocated: return "allocated";
        case memory_of_tensors::device: break;
    }
    return "device";
}

collectives_memory::collectives_memory(std::size_t bytes, cuda::device const* on) : bytes_(bytes), on_(on) {
    if (on_ == nullptr) {
        owned_.resize(bytes);
        host_ = owned_.data();
    } else {
        device_ = cuda::make_memory(*on_, std::max(bytes, std::size_t{1}));
    }
}

collectives_memory::collectives_memory(std::byte* lent, std::size_t bytes) noexcept : bytes_(bytes), host_(lent) {}

tensor_view collectives_memory::view(std::size_t offset, std::size_t count, dtype type) {
    if (on_ == nullptr) return {host_ + offset, count, type, memory_kind::host};
    return {std::bit_cast<void*>(device_.get().handle + offset), count, type, memory_kind::device};
}

void collectives_memory::upload(std::byte const* from) {
    cuda::device::scope const current(*on_);
    cuda::check(on_->with(), on_->with().copy_host_to_device(device_.get().handle, from, bytes_, nullptr), "cuMemcpyHtoDAsync");
    cuda::check(on_->with(), on_->with().stream_synchronize(nullptr), "cuStreamSynchronize");
}

void collectives_memory::download(std::byte* to) const {
    cuda::device::scope const current(*on_);
    cuda::check(on_->with(), on_->with().copy_device_to_host(to, device_.get().handle, bytes_, nullptr), "cuMemcpyDtoHAsync");
    cuda::check(on_->with(), on_->with().stream_synchronize(nullptr), "cuStreamSynchronize");
}

}  // namespace muster
