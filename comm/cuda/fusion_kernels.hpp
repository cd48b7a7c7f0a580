// Kernels that move, convert and scale many tensors in one launch on a GPU: they pack gradients into a fused buffer and unpack
// it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "comm/cuda/fusion_plan.hpp"
#include "comm/cuda/handles.hpp"
#include "comm/tensor/tensor.hpp"

namespace muster::cuda {

/// Why there are no kernels in this build, or nothing if there are.
std::optional<std::string> kernels_missing() noexcept;

/// The kernels, loaded into a device's context. Thread safe once made.
class fusion_kernels {
  public:
    /// Throws errc::unavailable, saying why, if the build has none or this GPU or driver takes none of what it has; cuda_error.
    static std::shared_ptr<fusion_kernels const> load(std::shared_ptr<device const> on);

    device const& on() const noexcept { return *device_; }
    kernel_handle kernel(std::string_view name) const;

    /// How many blocks of a kernel the device runs at once.
    std::uint32_t resident_blocks(std::string_view name) const;

  private:
    explicit fusion_kernels(std::shared_ptr<device const> on) : device_(std::move(on)) {}
    struct entry {
        std::string_view name;
        kernel_handle kernel = nullptr;
        std::uint32_t resident = 0;
    };
    entry const& find(std::string_view name) const;

    std::shared_ptr<device const> device_;
    unique_module module_;
    std::array<entry, fusion_ways> entries_{};
};

/// A launch that is prepared once and run many times, as for the same gradients step after step. Not thread safe.
class fusion_launch {
  public:
    explicit fusion_launch(std::shared_ptr<fusion_kernels const> kernels) : kernels_(std::move(kernels)) {}

    /// Tensor i of `from` goes to tensor i of `to`, multiplied by `factor` (see choose_way): the same count, all of one type on
    /// either side, all in device memory, distinct. The tables are copied to the device on `stream`. What was prepared before
    /// must have run on `stream` too, or be finished; blocks until its tables have been copied, and until it has run if there are
    /// more tensors now than ever. Throws errc::usage naming the tensor, what choose_way throws, cuda_error. `most_blocks`: 0 is
    /// as many as the device runs at once.
    ///
    /// With `residuals`, one for each tensor, f32 in device memory and as large, every run feeds back what rounding loses, bit
    /// for bit as compress() (comm/tensor/compress.hpp) does: to = round(from * factor + residual), and the
    /// residual becomes the rest. From f32 to f16 or bf16. The caller zeroes them before the first run.
    void prepare(std::span<tensor_view const> from, std::span<tensor_view const> to, double factor, void* stream,
                 std::uint32_t most_blocks = 0, std::span<tensor_view const> residuals = {});

    /// Puts what was prepared on `stream`, which is that of prepare() or waits for it. `this` must live until it has run there.
    /// Throws cuda_error.
    void run(void* stream) const;

    std::size_t bytes_moved() const noexcept { return bytes_; }  ///< read and written by one run
    std::uint32_t blocks() const noexcept { return plan_.blocks; }

  private:
    void upload(void* stream);

    std::shared_ptr<fusion_kernels const> kernels_;
    fusion_plan plan_;
    fusion_way way_;
    double factor_ = 1;
    std::size_t bytes_ = 0;
    std::size_t capacity_ = 0;
    unique_pinned staging_;  ///< what the device copies its tables from
    unique_memory tables_;
    unique_event uploaded_;
};

}  // namespace muster::cuda
