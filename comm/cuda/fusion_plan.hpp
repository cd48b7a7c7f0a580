// The plan by which the work of one launch is divided among the blocks of a GPU. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "comm/cuda/fusion_body.hpp"
#include "comm/tensor/tensor.hpp"

namespace muster::cuda {

/// Threads of a block.
inline constexpr std::uint32_t fusion_threads = 256;

/// One tensor's way: `count` elements from one place to another.
struct fusion_item {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t count = 0;
    std::uint64_t residual = 0;  ///< where what rounding loses is kept, by a way that does
    bool operator==(fusion_item const&) const = default;
};

/// A kernel of fusion_kernels.cu, and what it moves.
struct fusion_way {
    std::string_view kernel;  ///< "muster_f32_bf16"
    std::uint32_t from_bytes = 0;
    std::uint32_t to_bytes = 0;
    std::uint32_t piece_elements = 0;
    std::uint32_t factor_bytes = 0;  ///< of the kernel's second argument: 4 (float) or 8 (double)
    bool scales = false;             ///< multiplies by that argument
    bool keeps = false;              ///< adds a residual, and keeps what rounding loses there
};

/// The kernel from one type to another: the same bits if the types are the same and `factor` is 1, else scaled in f32 (f64 for
/// f64). Throws errc::unavailable for a pair of types that has none (between f16 and bf16, to or from f64) and errc::usage for
/// integers by a factor, with both types and the factor.
fusion_way choose_way(dtype from, dtype to, double factor);

/// The kernel that rounds f32 to f16 or bf16 with error feedback, as compress() does. Throws errc::usage for any other types.
fusion_way choose_keeping_way(dtype from, dtype to);

/// What the device reads, except for the address of these arrays.
struct fusion_plan {
    std::vector<fusion_segment> segments;  ///< the items that have elements, in their order
    std::vector<std::uint32_t> starts;     ///< blocks + 1 of them
    std::vector<std::uint64_t> residuals;  ///< of each segment, where the way keeps them
    std::uint64_t pieces = 0;
    std::uint32_t pieces_per_block = 0;
    std::uint32_t blocks = 0;  ///< 0: nothing to do
};

/// Cuts the items' elements into pieces of 16 bytes of the narrower type, aligned there, and gives each block the same number of
/// them (the last one fewer), whatever tensors they belong to: a multiple of fusion_threads, as few as make no more than
/// `most_blocks` blocks. Throws errc::usage for an item whose address is null or not aligned for its type, or whose two runs
/// overlap other than by being the same run of one size (a residual's overlaps neither), errc::invalid_data for more than 2^32 -
/// 2 items. Runs of different items must not overlap: not checked.
fusion_plan plan_fusion(std::span<fusion_item const> items, fusion_way const& way, std::uint32_t most_blocks);

/// Where each of the tensors begins in a fused buffer, in elements of the buffer: one after the other, each aligned to 16 bytes
/// so that all of them move in wide accesses; one more for the end. What lies between is moved by collectives and read by nobody.
std::vector<std::size_t> fused_offsets(std::span<std::size_t const> counts, dtype buffer);

}  // namespace muster::cuda
