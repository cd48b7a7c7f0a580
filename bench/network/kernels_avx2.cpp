// x86-64 with AVX2 and FMA: 16 registers of 8 floats.
#include "bench/network/kernel_table.hpp"

namespace muster {
namespace kernels_avx2 {
namespace {

struct tuning {
    static constexpr char const* name = "avx2";
    static constexpr int forward_rows = 4, forward_channels = 2;
    static constexpr int weight_gradient_planes = 2;
    static constexpr int dot_images = 2, dot_outputs = 5;
    static constexpr int outer_rows = 3, outer_vectors = 4;
    static constexpr int gemm_lanes = 8, gemm_rows = 6, gemm_vectors = 2;
    static constexpr int peak_chains = 12;
};

#include "bench/network/kernels_body.inc"

}  // namespace
}  // namespace kernels_avx2

extern kernel_table const kernel_table_avx2;
kernel_table const kernel_table_avx2 = kernels_avx2::table;

}  // namespace muster
