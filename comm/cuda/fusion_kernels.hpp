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
#include <vector>

#include "comm/cuda/fusion_body.hpp"
#include "comm/cuda/handles.hpp"
#include "comm/tensor/tensor.hpp"

namespace muster::cuda {

// A plan divides the work of one launch among the blocks of a GPU. Pure.

/// Threads of a block.
inline constexpr std::uint32_t fusion_threads = 256;

/// One tensor's move: `count` elements from one place to another.
struct fusion_item {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t count = 0;
    std::uint64_t residual = 0;  ///< keeps what rounding loses, if the way does so
    bool operator==(fusion_item const&) const = default;
};

/// A kernel of fusion_kernels.cu, and what it moves.
struct fusion_way {
    std::string_view kernel;  ///< "muster_f32_bf16"
    std::uint32_t from_bytes = 0;
    std::uint32_t to_bytes = 0;
    std::uint32_t piece_elements = 0;
    std::uint32_t factor_bytes = 0;  ///< size of the kernel's second argument: 4 (float) or 8 (double)
    bool scales = false;             ///< multiplies by that argument
    bool keeps = false;              ///< adds a residual, and keeps there what rounding loses
};

/// Returns the kernel from one type to another: it copies the bits if the types are the same and `factor` is 1, else it scales in
/// f32 (f64 for f64). Throws errc::unavailable for a pair of types without a kernel (between f16 and bf16, to or from f64) and
/// errc::usage for integers with a factor, with both types and the factor.
fusion_way choose_way(dtype from, dtype to, double factor);

/// Returns the kernel that rounds f32 to f16 or bf16 with error feedback, as compress() does. Throws errc::usage for other types.
fusion_way choose_keeping_way(dtype from, dtype to);

/// The tables that the device reads, without their addresses.
struct fusion_plan {
    std::vector<fusion_segment> segments;  ///< the items that have elements, in their order
    std::vector<std::uint32_t> starts;     ///< blocks + 1 of them
    std::vector<std::uint64_t> residuals;  ///< of each segment, if the way keeps them
    std::uint64_t pieces = 0;
    std::uint32_t pieces_per_block = 0;
    std::uint32_t blocks = 0;  ///< 0: nothing to do
};

/// Cuts the items' elements into pieces of 16 bytes of the narrower type, aligned there, and gives each block the same number of
/// them (the last one fewer), whatever tensors they belong to: a multiple of fusion_threads, as few as make no more than
/// `most_blocks` blocks. Throws errc::usage for an item whose address is null or not aligned for its type, or whose two runs
/// overlap without being the same run of one size (a residual's overlaps neither), errc::invalid_data for more than 2^32 - 2
/// items. Runs of different items must not overlap, which is not checked.
fusion_plan plan_fusion(std::span<fusion_item const> items, fusion_way const& way, std::uint32_t most_blocks);

/// Returns where each tensor begins in a fused buffer, in elements of the buffer, and where the last one ends: one after the
/// other, each aligned to 16 bytes so that all of them move in wide accesses. Collectives also move the gaps, which nobody reads.
std::vector<std::size_t> fused_offsets(std::span<std::size_t const> counts, dtype buffer);

/// Says why this build has no kernels; nothing if it has them.
std::optional<std::string> kernels_missing() noexcept;

/// The kernels, loaded into a device's context. Thread safe once made.
class fusion_kernels {
  public:
    /// Throws errc::unavailable, with the reason, if the build has none or if this GPU or driver accepts none of them;
    /// cuda_error.
    static std::shared_ptr<fusion_kernels const> load(std::shared_ptr<device const> on);

    device const& on() const noexcept { return *device_; }
    kernel_handle kernel(std::string_view name) const;

    /// Returns how many blocks of a kernel the device runs at once.
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

/// A launch that is prepared once and run many times, for the same gradients step after step. Not thread safe.
class fusion_launch {
  public:
    explicit fusion_launch(std::shared_ptr<fusion_kernels const> kernels) : kernels_(std::move(kernels)) {}

    /// Tensor i of `from` goes to tensor i of `to`, multiplied by `factor` (see choose_way): the same count, all of one type on
    /// either side, all in device memory, distinct. The tables are copied to the device on `stream`. The earlier launch must have
    /// run on `stream` too, or be finished; blocks until its tables have been copied, and until it has run if there are more
    /// tensors now than ever. Throws errc::usage naming the tensor, what choose_way throws, cuda_error. `most_blocks`: 0 is as
    /// many as the device runs at once.
    ///
    /// With `residuals`, one for each tensor, f32 in device memory and as large, every run feeds back what rounding loses, bit
    /// for bit as compress() (comm/tensor/compress.hpp) does: to = round(from * factor + residual), and the residual becomes the
    /// rest. From f32 to f16 or bf16. The caller zeroes them before the first run.
    void prepare(std::span<tensor_view const> from, std::span<tensor_view const> to, double factor, void* stream,
                 std::uint32_t most_blocks = 0, std::span<tensor_view const> residuals = {});

    /// Puts the prepared launch on `stream`, which is that of prepare() or waits for it. `this` must live until it has run there.
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
    unique_pinned staging_;  ///< the device copies its tables from here
    unique_memory tables_;
    unique_event uploaded_;
};

}  // namespace muster::cuda
