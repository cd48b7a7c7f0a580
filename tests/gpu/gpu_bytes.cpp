#include "gpu_test.hpp"

namespace muster::test {

void gpu_bytes::upload(std::span<std::byte const> from, cuda::stream_handle on) {
    cuda::driver const& with = gpu()->with();
    cuda::device::scope const current(*gpu());
    if (!from.empty()) cuda::check(with, with.copy_host_to_device(address(), from.data(), from.size(), on), "cuMemcpyHtoDAsync");
    cuda::check(with, with.stream_synchronize(on), "cuStreamSynchronize");
}

std::vector<std::byte> gpu_bytes::download(cuda::stream_handle on) const {
    return test::download<std::byte>({std::bit_cast<void*>(address()), count_, dtype::u8, memory_kind::device}, on);
}

}  // namespace muster::test
