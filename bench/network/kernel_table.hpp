// The compute kernels of the training benchmark, as one table of plain functions for each instruction set.
//
// This header is included by files that are compiled for newer processors than the rest of the program. It therefore holds plain
// data only: an inline function of the standard library compiled there could be the copy the linker keeps for everybody.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster {

/// A 5x5 convolution without padding, stride 1, followed by 2x2 max-pooling and ReLU, all fused.
/// Input planes are rows of floats, `in_row` apart, planes `in_plane` apart; in_row >= width + 7 rounded so that a load of 8
/// floats from any window position stays inside the row or the next. The output of channel c, pooled pixel (y, x), is at c *
/// out_plane + y * out_row + x. Winners (which of the four pixels was the maximum) are dense: c * pooled_pixels + y *
/// pooled_width + x.
struct convolution_shape {
    int in_channels, in_row, in_plane;
    int out_channels;
    int height, width;  ///< before pooling; multiples of 8
    int out_row, out_plane;
};

inline constexpr int convolution_window = 5;
inline constexpr int convolution_taps = convolution_window * convolution_window;
inline constexpr int padded_row = 8;          ///< a window's row in the weight gradient's accumulators: 5 used of 8
inline constexpr int padded_channels = 16;    ///< channels a pixel in the input gradient: the rest is padding
inline constexpr std::uint8_t no_winner = 4;  ///< the maximum was not positive, so that no gradient passes

/// One layer's matrix sizes: `in` inputs (rows of `in_stride` floats, a multiple of 8, the padding zero), `out` outputs.
struct linear_shape {
    int in, in_stride, out, out_stride;
};

/// The pixels of one channel through which gradient flows back: where in an input plane the window starts, and how much.
struct gradient_list {
    std::int32_t const* offset;
    float const* value;
    int count;
};

/// The product of matrices whose rows lie anywhere: C of `rows` x `columns`, summed over `depth`.
struct gemm_shape {
    int rows, columns, depth;
};

/// A factor of a product, by the addresses of its rows. A is rows x depth: row[i][k], or row[k][i] if it does not lie across. B is
/// depth x columns: row[k][j], or row[j][k] if it lies across. "Across" is: the depth runs along the row.
struct gemm_operand {
    float const* const* row;
    bool across;
};
inline constexpr int gemm_scratch_floats = 80 << 10;

/// Not one of these functions allocates, throws or keeps state; all of them may run on several threads over disjoint outputs.
struct kernel_table {
    char const* name;

    /// out = max(0, scale * maxpool(image * weights + bias)) for the `count` channels listed; others are left alone.
    /// weights: [out_channels][in_channels][5][5].
    void (*convolution_forward)(convolution_shape const&, float const* image, float const* weights, float const* bias,
                                std::uint16_t const* channels, int count, float scale, float* out, std::uint8_t* winners);

    /// sums[in_channels][5][padded_row] += value * (the window at offset), over the list; lanes 5 to 7 of a row are undefined.
    void (*convolution_weight_gradient)(convolution_shape const&, float const* image, gradient_list, float* sums);

    /// gradient[(offset + 5x5 window)][padded_channels] += value * weights, over the list. weights: [25][padded_channels], one
    /// output channel's; a row of the gradient has in_row pixels, as the image has.
    void (*convolution_input_gradient)(convolution_shape const&, float const* weights, gradient_list, float* gradient);

    /// out[n][o] = bias[o] + sum_k in[n][k] weights[o][k]; weights' rows are in_stride apart.
    void (*linear_forward)(linear_shape const&, int images, float const* in, float const* weights, float const* bias, float* out);
    /// in_gradient[n][k] = sum_o out_gradient[n][o] weights[o][k], whole rows of in_stride.
    void (*linear_input_gradient)(linear_shape const&, int images, float const* out_gradient, float const* weights,
                                  float* in_gradient);
    /// weight_gradient[o][k] = sum_n out_gradient[n][o] in[n][k]; rows in_stride apart.
    void (*linear_weight_gradient)(linear_shape const&, int images, float const* in, float const* out_gradient,
                                   float* weight_gradient);

    /// c[i][j] = the product, or c[i][j] += it with `add`. `scratch`: gemm_scratch_floats, not shared between threads.
    void (*gemm)(gemm_shape const&, gemm_operand const& a, gemm_operand const& b, float* const* c, bool add, float* scratch);

    /// out[i] = bytes[i] * factor + offset
    void (*normalise)(std::uint8_t const* bytes, int count, float factor, float offset, float* out);
    /// velocity = momentum * velocity + gradient; parameter -= rate * velocity
    void (*sgd)(float* parameters, float const* gradients, float* velocity, std::size_t count, float rate, float momentum);

    /// Does `rounds` x peak_flops floating-point operations in registers, as fast as this instruction set can: the bound for the
    /// other kernels. The result only keeps the compiler from dropping them.
    float (*peak)(long rounds);
    int peak_flops;
};

}  // namespace muster
