// The means by which the GPU layers compute: one GPU, its stream, cuDNN, cuBLAS and our kernels on it. Checks their calls.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "bench/gpu/library/cublas_functions.hpp"
#include "bench/gpu/library/cudnn_functions.hpp"
#include "bench/gpu/library/network_body.hpp"
#include "comm/cuda/handles.hpp"

namespace muster {

/// Floats in device memory. Move-only.
class gpu_floats {
  public:
    gpu_floats() = default;
    gpu_floats(cuda::device const& on, std::size_t count);
    float* data() const noexcept;
    std::size_t size() const noexcept { return count_; }

  private:
    cuda::unique_memory memory_;
    std::size_t count_ = 0;
};

/// While it lives the GPU's context is that of the thread that made it, which alone uses it. Everything is put on stream() and
/// nothing is waited for, so that it can be captured into a graph. All arithmetic is f32 by FMA, and algorithms are deterministic.
class gpu_compute {
  public:
    /// "", or what is missing on this machine or in this build, and one thing to do.
    static std::string lacking();

    /// Throws errc::unavailable with lacking(), or where this GPU takes none of the kernels; cuda_error, library_error.
    explicit gpu_compute(std::shared_ptr<cuda::device const> on);
    gpu_compute(gpu_compute const&) = delete;
    gpu_compute& operator=(gpu_compute const&) = delete;
    ~gpu_compute();

    cuda::device const& on() const noexcept { return *on_; }
    std::shared_ptr<cuda::device const> const& device() const noexcept { return on_; }
    cuda::driver const& driver() const noexcept { return on_->with(); }
    cuda::stream_handle stream() const noexcept { return stream_.get().handle; }
    cudnn::functions const& dnn() const noexcept { return *dnn_; }

    /// Memory for the algorithms of convolutions, shared by all layers of the stream.
    void* workspace() const noexcept { return workspace_.data(); }
    static constexpr std::size_t workspace_bytes = std::size_t{64} << 20;

    void check(int code, std::string_view call) const { cuda::check(driver(), code, call); }
    void check_dnn(int code, std::string_view call) const;

    /// Calls a function of cuDNN's with its handle before `arguments`.
    template <typename Function, typename... Arguments>
    void call(std::string_view name, Function cudnn::functions::*function, Arguments... arguments) const {
        check_dnn((dnn_.get()->*function)(dnn_handle_, arguments...), name);
    }
    cudnn::handle dnn_handle() const noexcept { return dnn_handle_; }

    /// c (m x n) = a (m x k) * b (k x n), column after column, each transposed if said so.
    struct product {
        bool transpose_a = false, transpose_b = false;
        int m = 0, n = 0, k = 0;
        float const* a = nullptr;
        int a_step = 0;
        float const* b = nullptr;
        int b_step = 0;
        float* c = nullptr;
        int c_step = 0;
    };
    void multiply(product const& what) const;

    void run(cuda::gather_work work) const { launch(kernels_[0], work.count, &work); }
    void run(cuda::loss_work work) const { launch(kernels_[1], work.count, &work); }
    void run(cuda::dropout_work work) const { launch(kernels_[2], work.count, &work); }
    void run(cuda::sgd_work work) const { launch(kernels_[3], work.count, &work); }

    // Copies between the host and device memory, which wait for the stream.
    void upload(void* to, void const* from, std::size_t bytes) const;
    void download(void* to, void const* from, std::size_t bytes) const;
    void synchronize() const { check(driver().stream_synchronize(stream()), "cuStreamSynchronize"); }

    std::string cudnn_version() const;   ///< "9.13.0"
    std::string cublas_version() const;  ///< "13.0.2"
    std::string driver_version() const;  ///< "13.0": the newest CUDA that the driver takes
    int clock_mhz() const;               ///< the highest of the multiprocessors

  private:
    void load_kernels();
    void launch(cuda::kernel_handle kernel, std::uint64_t count, void* work) const;
    void check_blas(int code, std::string_view call) const;

    std::shared_ptr<cuda::device const> on_;  // before what is on it
    std::unique_ptr<cuda::device::scope> current_;
    cuda::unique_stream stream_;
    cuda::unique_module module_;
    static constexpr int kernel_count = 4;
    cuda::kernel_handle kernels_[kernel_count]{};
    std::shared_ptr<cudnn::functions const> dnn_;
    std::shared_ptr<cublas::functions const> blas_;
    gpu_floats workspace_, blas_workspace_;
    cudnn::handle dnn_handle_ = nullptr;
    cublas::handle blas_handle_ = nullptr;
};

}  // namespace muster
