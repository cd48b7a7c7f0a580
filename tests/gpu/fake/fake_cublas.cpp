// A FAKE cuBLAS: the calls of bench/gpu, by loops on the host, put on the fake driver's streams. See fake_gpu.hpp.
#include <cstddef>
#include <string>

#include "bench/gpu/library/cublas_functions.hpp"
#include "fake_gpu.hpp"

using muster::fake::put_work;

namespace {

constexpr int ok = 0;
constexpr int bad_value = 7;

struct fake_blas {
    void* stream = nullptr;
    bool has_workspace = false;
};

}  // namespace

extern "C" {

char const* cublasGetStatusString(int) {
    return "told by the fake cuBLAS";
}
int cublasCreate_v2(fake_blas** handle) {
    *handle = new fake_blas;
    return ok;
}
int cublasDestroy_v2(fake_blas* handle) {
    delete handle;
    return ok;
}
int cublasGetVersion_v2(fake_blas*, int* version) {
    *version = 130100;
    return ok;
}
int cublasSetStream_v2(fake_blas* handle, void* stream) {
    handle->stream = stream;
    handle->has_workspace = false;  // as the real one, which goes back to its own
    return ok;
}
int cublasSetWorkspace_v2(fake_blas* handle, void* place, std::size_t) {
    handle->has_workspace = place != nullptr;
    return ok;
}
/// c (m x n) = alpha * a (m x k) * b (k x n) + beta * c, column after column.
int cublasSgemm_v2(fake_blas* handle, int transpose_a, int transpose_b, int m, int n, int k, float const* alpha, float const* a,
                   int a_step, float const* b, int b_step, float const* beta, float* c, int c_step) {
    int const a_rows = transpose_a != 0 ? k : m, b_rows = transpose_b != 0 ? n : k;
    if (!handle->has_workspace || a_step < a_rows || b_step < b_rows || c_step < m) return bad_value;
    float const factor = *alpha, kept = *beta;
    put_work(handle->stream, [=] {
        auto const at = [](float const* of, int step, bool across, int row, int column) {
            return across ? of[static_cast<std::ptrdiff_t>(row) * step + column]
                          : of[static_cast<std::ptrdiff_t>(column) * step + row];
        };
        for (int j = 0; j < n; ++j)
            for (int i = 0; i < m; ++i) {
                double sum = 0;
                for (int l = 0; l < k; ++l)
                    sum += static_cast<double>(at(a, a_step, transpose_a != 0, i, l)) *
                           static_cast<double>(at(b, b_step, transpose_b != 0, l, j));
                float& out = c[static_cast<std::ptrdiff_t>(j) * c_step + i];
                out = factor * static_cast<float>(sum) + (kept == 0 ? 0.0f : kept * out);
            }
    });
    return ok;
}
}
