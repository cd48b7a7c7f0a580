// x86-64 with AVX-512 (F, VL, BW, DQ): 32 registers of 8 floats. Registers of 16 would suit no row of 8, 12 or 24 pixels.
#include "bench/network/kernel_table.hpp"

namespace muster {
namespace kernels_avx512 {
namespace {

struct tuning {
    static constexpr char const* name = "avx512";
    static constexpr int forward_rows = 8, forward_channels = 2;
    static constexpr int weight_gradient_planes = 5;
    static constexpr int dot_images = 4, dot_outputs = 5;
    static constexpr int outer_rows = 5, outer_vectors = 4;
    static constexpr int gemm_lanes = 16, gemm_rows = 8, gemm_vectors = 2;
    static constexpr int peak_chains = 16;
};

#include "bench/network/kernels_body.inc"

}  // namespace
}  // namespace kernels_avx512

extern kernel_table const kernel_table_avx512;
kernel_table const kernel_table_avx512 = kernels_avx512::table;

}  // namespace muster
