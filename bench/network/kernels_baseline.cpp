// Any processor: what the compiler makes of 8-float vectors for its plain target (SSE2 on x86-64).
#include "bench/network/kernel_table.hpp"

namespace muster {
namespace kernels_baseline {
namespace {

struct tuning {
    static constexpr char const* name = "baseline";
    static constexpr int forward_rows = 2, forward_channels = 2;
    static constexpr int weight_gradient_planes = 2;
    static constexpr int dot_images = 2, dot_outputs = 2;
    static constexpr int outer_rows = 2, outer_vectors = 2;
    static constexpr int gemm_lanes = 4, gemm_rows = 4, gemm_vectors = 2;
    static constexpr int peak_chains = 6;
};

#include "bench/network/kernels_body.inc"

}  // namespace
}  // namespace kernels_baseline

extern kernel_table const kernel_table_baseline;
kernel_table const kernel_table_baseline = kernels_baseline::table;

}  // namespace muster
