#include "bench/gpu/layers/gpu_compute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.hpp"
#include "bench/gpu/library/network_image.hpp"

namespace muster {

namespace {

constexpr unsigned network_threads = 256;                            // a block, as network_kernels.cu says
constexpr std::size_t blas_workspace_bytes = std::size_t{32} << 20;  // what cuBLAS's manual recommends for Hopper

constexpr std::array network_kernel_names{
#define MUSTER_NAME(name) "muster_net_" #name,
    MUSTER_NETWORK_KERNELS(MUSTER_NAME)
#undef MUSTER_NAME
};

std::string three_numbers(long version, long major_unit, long minor_unit) {
    return fmt::format("{}.{}.{}", version / major_unit, version % major_unit / minor_unit, version % minor_unit);
}

}  // namespace

gpu_floats::gpu_floats(cuda::device const& on, std::size_t count)
    : memory_(cuda::make_memory(on, std::max<std::size_t>(count, 1) * sizeof(float))), count_(count) {}

float* gpu_floats::data() const noexcept {
    return std::bit_cast<float*>(memory_.get().handle);
}

std::string gpu_compute::lacking() {
    if (cuda::network_image_size == 0)
        return "this build has no CUDA kernels; install nvcc (CUDA 11.8 or later) and build again with MUSTER_WITH_CUDA=ON";
    if (auto const& found = cuda::find_driver(); found.use == nullptr) return found.why_not + "; train with --device cpu";
    if (auto const& found = cudnn::find(); !found.use)
        return found.why_not + "; install cuDNN 9 and name its folder in LD_LIBRARY_PATH";
    if (auto const& found = cublas::find(); !found.use)
        return found.why_not + "; install the CUDA toolkit's cuBLAS and name its folder in LD_LIBRARY_PATH";
    return {};
}

gpu_compute::gpu_compute(std::shared_ptr<cuda::device const> on)
    : on_(std::move(on)), current_(std::make_unique<cuda::device::scope>(*on_)), stream_(cuda::make_stream(*on_)) {
    if (auto const why = lacking(); !why.empty()) throw error(errc::unavailable, "training on a GPU: " + why);
    dnn_ = cudnn::find().use;
    blas_ = cublas::find().use;
    load_kernels();
    workspace_ = gpu_floats(*on_, workspace_bytes / sizeof(float));
    blas_workspace_ = gpu_floats(*on_, blas_workspace_bytes / sizeof(float));
    check_dnn(dnn_->create(&dnn_handle_), "cudnnCreate");
    check_dnn(dnn_->set_stream(dnn_handle_, stream()), "cudnnSetStream");
    check_blas(blas_->create(&blas_handle_), "cublasCreate");
    check_blas(blas_->set_stream(blas_handle_, stream()), "cublasSetStream");
    // Behind set_stream, which gives the library's own workspace back; one of ours is the same in every launch of a graph.
    check_blas(blas_->set_workspace(blas_handle_, blas_workspace_.data(), blas_workspace_bytes), "cublasSetWorkspace");
}

gpu_compute::~gpu_compute() {
    driver().stream_synchronize(stream());
    if (blas_handle_ != nullptr) blas_->destroy(blas_handle_);
    if (dnn_handle_ != nullptr) dnn_->destroy(dnn_handle_);
}

void gpu_compute::load_kernels() {
    cuda::module_handle module = nullptr;
    int const code = driver().module_load(&module, cuda::network_image);
    if (code == cuda::error_no_binary_for_gpu || code == cuda::error_unsupported_ptx_version)
        throw error(
            errc::unavailable,
            fmt::format("{}, with a driver for CUDA {}, takes none of the kernels of this build ({}): {}; build with a CUDA "
                        "toolkit that is not newer than the driver, and with MUSTER_CUDA_ARCHITECTURES for this GPU",
                        on_->name(), driver_version(), cuda::network_image_contents, cuda::describe(driver(), code)));
    check(code, "cuModuleLoadData");
    module_.reset({on_.get(), module});
    static_assert(network_kernel_names.size() == kernel_count);
    for (std::size_t i = 0; i < network_kernel_names.size(); ++i)
        check(driver().module_function(&kernels_[i], module, network_kernel_names[i]), "cuModuleGetFunction");
}

void gpu_compute::check_dnn(int code, std::string_view call) const {
    if (code != cudnn::success) throw library_error("cuDNN", call, code, dnn_->error_string(code));
}

void gpu_compute::check_blas(int code, std::string_view call) const {
    if (code != cublas::success) throw library_error("cuBLAS", call, code, blas_->status_string(code));
}

void gpu_compute::multiply(product const& what) const {
    float const one = 1, zero = 0;
    auto const way = [](bool transpose) { return transpose ? cublas::transposed : cublas::as_it_is; };
    check_blas(blas_->sgemm(blas_handle_, way(what.transpose_a), way(what.transpose_b), what.m, what.n, what.k, &one, what.a,
                            what.a_step, what.b, what.b_step, &zero, what.c, what.c_step),
               "cublasSgemm");
}

void gpu_compute::launch(cuda::kernel_handle kernel, std::uint64_t count, void* work) const {
    if (count == 0) return;
    // Eight blocks fill a multiprocessor; each thread then goes on in strides.
    auto const most = static_cast<std::uint64_t>(std::max(1, on_->multiprocessors())) * 8;
    auto const blocks = static_cast<unsigned>(std::min(most, (count + network_threads - 1) / network_threads));
    std::array<void*, 1> arguments{work};
    check(driver().launch(kernel, blocks, 1, 1, network_threads, 1, 1, 0, stream(), arguments.data(), nullptr), "cuLaunchKernel");
}

void gpu_compute::upload(void* to, void const* from, std::size_t bytes) const {
    if (bytes == 0) return;
    check(driver().copy_host_to_device(std::bit_cast<cuda::device_address>(to), from, bytes, stream()), "cuMemcpyHtoDAsync");
    synchronize();
}

void gpu_compute::download(void* to, void const* from, std::size_t bytes) const {
    if (bytes == 0) return;
    check(driver().copy_device_to_host(to, std::bit_cast<cuda::device_address>(from), bytes, stream()), "cuMemcpyDtoHAsync");
    synchronize();
}

std::string gpu_compute::cudnn_version() const {
    auto const version = static_cast<long>(dnn_->version());
    return version >= 90000 ? three_numbers(version, 10000, 100) : three_numbers(version, 1000, 100);
}

std::string gpu_compute::cublas_version() const {
    int version = 0;
    check_blas(blas_->version(blas_handle_, &version), "cublasGetVersion");
    return three_numbers(version, 10000, 100);
}

std::string gpu_compute::driver_version() const {
    int version = 0;
    check(driver().version(&version), "cuDriverGetVersion");
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

int gpu_compute::clock_mhz() const {
    int khz = 0;
    check(driver().device_attribute(&khz, cuda::attribute_clock_khz, on_->ordinal()), "cuDeviceGetAttribute");
    return khz / 1000;
}

}  // namespace muster
