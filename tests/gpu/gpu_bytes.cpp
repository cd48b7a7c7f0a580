#include "gpu_test.hpp"

namespace muster::test {

void gpu_bytes::upload(std::span<std::byte const> from, cuda::stream_handle on) {
    cuda::driver const& with = gpu()->with();
    cuda::device::scope const current(*gpu());
    if (!from.empty()) cuda::check(with, with.copy_host_to_device(address(), from.data(), from.size(), on), "cuMemcpyHtoDAsync");
    cuda::check(with, with.stream_synchronize(on), "cuStreamSynchronize");
}

std::vector<std::byte> gpu_bytes::download(cuda::stream_handle on) const {
    std::vector<std::byte> result(count_);
    cuda::driver const& with = gpu()->with();
    cuda::device::scope const current(*gpu());
    if (count_ != 0) cuda::check(with, with.copy_device_to_host(result.data(), address(), count_, on), "cuMemcpyDtoHAsync");
    cuda::check(with, with.stream_synchronize(on), "cuStreamSynchronize");
    return result;
}

}  // namespace muster::test
