// A FAKE cuDNN: the calls of bench/gpu, by loops on the host, put on the fake driver's streams. See fake_gpu.hpp. It takes f32 in
// planes (NCHW) only, convolutions without dilation, and checks that shapes fit each other.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "bench/gpu/library/cudnn_functions.hpp"
#include "fake_gpu.hpp"

using muster::cudnn::algorithm;
using muster::fake::put_work;

namespace {

constexpr int ok = 0;
constexpr int bad_parameter = 2000;

struct fake_dnn {
    void* stream = nullptr;
};

struct fake_tensor {
    int n = 0, c = 0, h = 0, w = 0;
    std::ptrdiff_t size() const noexcept { return static_cast<std::ptrdiff_t>(n) * c * h * w; }
    std::ptrdiff_t at(int i, int j, int y, int x) const noexcept {
        return ((static_cast<std::ptrdiff_t>(i) * c + j) * h + y) * w + x;
    }
    bool operator==(fake_tensor const&) const = default;
};

struct fake_convolution {
    int padding = 0, stride = 1;
    bool stays_f32 = false;
};

struct fake_pooling {
    int window = 0;
};

/// What cuDNN may offer: one that is not deterministic, one that needs more memory than anybody has, one to take.
constexpr int good_algorithm = 2;
constexpr std::size_t workspace_needed = 4096;
int offer(int most, int* count, algorithm* to) {
    algorithm const all[]{
        {0, ok, 1, 0, 0, 3, {}}, {1, ok, 2, std::size_t{1} << 60, 1, 3, {}}, {good_algorithm, ok, 3, workspace_needed, 1, 3, {}}};
    *count = std::min(most, 3);
    std::copy_n(all, *count, to);
    return ok;
}

bool fits(fake_tensor const& x, fake_tensor const& w, fake_convolution const& how, fake_tensor const& y) {
    auto const size = [&](int in, int window) { return (in + 2 * how.padding - window) / how.stride + 1; };
    return x.n == y.n && x.c == w.c && y.c == w.n && y.h == size(x.h, w.h) && y.w == size(x.w, w.w);
}

/// Calls `body(input's place, filter's place, output's place)` for every product of the convolution.
template <typename Body>
void each_product(fake_tensor const& x, fake_tensor const& w, fake_convolution const& how, fake_tensor const& y, Body&& body) {
    for (int n = 0; n < y.n; ++n)
        for (int k = 0; k < y.c; ++k)
            for (int c = 0; c < x.c; ++c)
                for (int r = 0; r < w.h; ++r)
                    for (int s = 0; s < w.w; ++s) {
                        auto const filter = w.at(k, c, r, s);
                        for (int oy = 0; oy < y.h; ++oy) {
                            int const iy = oy * how.stride - how.padding + r;
                            if (iy < 0 || iy >= x.h) continue;
                            for (int ox = 0; ox < y.w; ++ox) {
                                int const ix = ox * how.stride - how.padding + s;
                                if (ix >= 0 && ix < x.w) body(x.at(n, c, iy, ix), filter, y.at(n, k, oy, ox));
                            }
                        }
                    }
}

float const* floats(void const* from) {
    return static_cast<float const*>(from);
}

/// Sums in double and writes alpha * sum + beta * what was there.
struct summed {
    std::vector<double> sums;
    explicit summed(std::ptrdiff_t count) : sums(static_cast<std::size_t>(count)) {}
    double& operator[](std::ptrdiff_t i) { return sums[static_cast<std::size_t>(i)]; }
    void write(void* to, float alpha, float beta) const {
        auto* const out = static_cast<float*>(to);
        for (std::size_t i = 0; i < sums.size(); ++i)
            out[i] = alpha * static_cast<float>(sums[i]) + (beta == 0 ? 0.0f : beta * out[i]);
    }
};

float number(void const* scalar) {
    return *static_cast<float const*>(scalar);
}

bool wrong_call(int which, void* workspace, std::size_t bytes, fake_convolution const& how) {
    return which != good_algorithm || workspace == nullptr || bytes < workspace_needed || !how.stays_f32;
}

/// Algorithms write to their workspace: two that used it at once would show.
void use_workspace(void* workspace) {
    std::memset(workspace, 0xff, workspace_needed);
}

}  // namespace

extern "C" {

std::size_t cudnnGetVersion() {
    return 91900;
}
char const* cudnnGetErrorString(int) {
    return "told by the fake cuDNN";
}
int cudnnCreate(fake_dnn** handle) {
    *handle = new fake_dnn;
    return ok;
}
int cudnnDestroy(fake_dnn* handle) {
    delete handle;
    return ok;
}
int cudnnSetStream(fake_dnn* handle, void* stream) {
    handle->stream = stream;
    return ok;
}
int cudnnCreateTensorDescriptor(fake_tensor** made) {
    *made = new fake_tensor;
    return ok;
}
int cudnnDestroyTensorDescriptor(fake_tensor* of) {
    delete of;
    return ok;
}
int cudnnSetTensor4dDescriptor(fake_tensor* of, int format, int type, int n, int c, int h, int w) {
    if (format != 0 || type != 0 || n < 1 || c < 1 || h < 1 || w < 1) return bad_parameter;
    *of = {n, c, h, w};
    return ok;
}
int cudnnCreateFilterDescriptor(fake_tensor** made) {
    return cudnnCreateTensorDescriptor(made);
}
int cudnnDestroyFilterDescriptor(fake_tensor* of) {
    return cudnnDestroyTensorDescriptor(of);
}
int cudnnSetFilter4dDescriptor(fake_tensor* of, int type, int format, int k, int c, int h, int w) {
    return cudnnSetTensor4dDescriptor(of, format, type, k, c, h, w);
}
int cudnnCreateConvolutionDescriptor(fake_convolution** made) {
    *made = new fake_convolution;
    return ok;
}
int cudnnDestroyConvolutionDescriptor(fake_convolution* of) {
    delete of;
    return ok;
}
int cudnnSetConvolution2dDescriptor(fake_convolution* of, int pad_h, int pad_w, int u, int v, int dilation_h, int dilation_w,
                                    int mode, int type) {
    if (pad_h != pad_w || u != v || dilation_h != 1 || dilation_w != 1 || mode != 1 || type != 0) return bad_parameter;
    of->padding = pad_h;
    of->stride = u;
    return ok;
}
int cudnnSetConvolutionMathType(fake_convolution* of, int math) {
    of->stays_f32 = math == muster::cudnn::math_fma;
    return ok;
}
int cudnnCreatePoolingDescriptor(fake_pooling** made) {
    *made = new fake_pooling;
    return ok;
}
int cudnnDestroyPoolingDescriptor(fake_pooling* of) {
    delete of;
    return ok;
}
int cudnnSetPooling2dDescriptor(fake_pooling* of, int mode, int, int h, int w, int pad_h, int pad_w, int stride_h, int stride_w) {
    if (mode != 3 || h != w || pad_h != 0 || pad_w != 0 || stride_h != h || stride_w != w) return bad_parameter;
    of->window = h;
    return ok;
}
int cudnnCreateActivationDescriptor(int** made) {
    *made = new int(-1);
    return ok;
}
int cudnnDestroyActivationDescriptor(int* of) {
    delete of;
    return ok;
}
int cudnnSetActivationDescriptor(int* of, int mode, int, double) {
    *of = mode;
    return mode == 1 ? ok : bad_parameter;
}

int cudnnGetConvolutionForwardAlgorithm_v7(fake_dnn*, fake_tensor* x, fake_tensor* w, fake_convolution* how, fake_tensor* y,
                                           int most, int* count, algorithm* to) {
    return fits(*x, *w, *how, *y) ? offer(most, count, to) : bad_parameter;
}
int cudnnGetConvolutionBackwardDataAlgorithm_v7(fake_dnn*, fake_tensor* w, fake_tensor* y, fake_convolution* how, fake_tensor* x,
                                                int most, int* count, algorithm* to) {
    return fits(*x, *w, *how, *y) ? offer(most, count, to) : bad_parameter;
}
int cudnnGetConvolutionBackwardFilterAlgorithm_v7(fake_dnn*, fake_tensor* x, fake_tensor* y, fake_convolution* how,
                                                  fake_tensor* w, int most, int* count, algorithm* to) {
    return fits(*x, *w, *how, *y) ? offer(most, count, to) : bad_parameter;
}

int cudnnConvolutionForward(fake_dnn* handle, void const* alpha, fake_tensor* x_of, void const* x, fake_tensor* w_of,
                            void const* w, fake_convolution* how, int which, void* workspace, std::size_t bytes, void const* beta,
                            fake_tensor* y_of, void* y) {
    if (!fits(*x_of, *w_of, *how, *y_of) || wrong_call(which, workspace, bytes, *how)) return bad_parameter;
    return put_work(handle->stream, [=, xs = *x_of, ws = *w_of, ys = *y_of, by = *how, a = number(alpha), b = number(beta)] {
        use_workspace(workspace);
        summed out(ys.size());
        each_product(xs, ws, by, ys, [&](auto i, auto f, auto o) { out[o] += double{floats(x)[i]} * double{floats(w)[f]}; });
        out.write(y, a, b);
    });
}
int cudnnConvolutionBackwardData(fake_dnn* handle, void const* alpha, fake_tensor* w_of, void const* w, fake_tensor* dy_of,
                                 void const* dy, fake_convolution* how, int which, void* workspace, std::size_t bytes,
                                 void const* beta, fake_tensor* dx_of, void* dx) {
    if (!fits(*dx_of, *w_of, *how, *dy_of) || wrong_call(which, workspace, bytes, *how)) return bad_parameter;
    return put_work(handle->stream, [=, xs = *dx_of, ws = *w_of, ys = *dy_of, by = *how, a = number(alpha), b = number(beta)] {
        use_workspace(workspace);
        summed out(xs.size());
        each_product(xs, ws, by, ys, [&](auto i, auto f, auto o) { out[i] += double{floats(dy)[o]} * double{floats(w)[f]}; });
        out.write(dx, a, b);
    });
}
int cudnnConvolutionBackwardFilter(fake_dnn* handle, void const* alpha, fake_tensor* x_of, void const* x, fake_tensor* dy_of,
                                   void const* dy, fake_convolution* how, int which, void* workspace, std::size_t bytes,
                                   void const* beta, fake_tensor* dw_of, void* dw) {
    if (!fits(*x_of, *dw_of, *how, *dy_of) || wrong_call(which, workspace, bytes, *how)) return bad_parameter;
    return put_work(handle->stream, [=, xs = *x_of, ws = *dw_of, ys = *dy_of, by = *how, a = number(alpha), b = number(beta)] {
        use_workspace(workspace);
        summed out(ws.size());
        each_product(xs, ws, by, ys, [&](auto i, auto f, auto o) { out[f] += double{floats(dy)[o]} * double{floats(x)[i]}; });
        out.write(dw, a, b);
    });
}
int cudnnConvolutionBackwardBias(fake_dnn* handle, void const* alpha, fake_tensor* dy_of, void const* dy, void const* beta,
                                 fake_tensor* db_of, void* db) {
    if (*db_of != fake_tensor{1, dy_of->c, 1, 1}) return bad_parameter;
    return put_work(handle->stream, [=, ys = *dy_of, a = number(alpha), b = number(beta)] {
        summed out(ys.c);
        for (std::ptrdiff_t i = 0; i < ys.size(); ++i) out[i / (ys.h * ys.w) % ys.c] += double{floats(dy)[i]};
        out.write(db, a, b);
    });
}
int cudnnAddTensor(fake_dnn* handle, void const* alpha, fake_tensor* a_of, void const* added, void const* beta, fake_tensor* c_of,
                   void* to) {
    if (*a_of != fake_tensor{1, c_of->c, 1, 1}) return bad_parameter;
    return put_work(handle->stream, [=, cs = *c_of, a = number(alpha), b = number(beta)] {
        auto* const out = static_cast<float*>(to);
        for (std::ptrdiff_t i = 0; i < cs.size(); ++i) out[i] = a * floats(added)[i / (cs.h * cs.w) % cs.c] + b * out[i];
    });
}

int cudnnPoolingForward(fake_dnn* handle, fake_pooling* how, void const*, fake_tensor* x_of, void const* x, void const*,
                        fake_tensor* y_of, void* y) {
    int const step = how->window;
    if (*y_of != fake_tensor{x_of->n, x_of->c, x_of->h / step, x_of->w / step}) return bad_parameter;
    return put_work(handle->stream, [=, xs = *x_of, ys = *y_of] {
        for (std::ptrdiff_t i = 0; i < ys.size(); ++i) {
            auto const px = static_cast<int>(i % ys.w), py = static_cast<int>(i / ys.w % ys.h);
            auto const plane = i / (ys.w * ys.h) * xs.w * xs.h;
            float largest = -std::numeric_limits<float>::infinity();
            for (int dy = 0; dy < step; ++dy)
                for (int dx = 0; dx < step; ++dx)
                    largest = std::max(largest, floats(x)[plane + (py * step + dy) * xs.w + px * step + dx]);
            static_cast<float*>(y)[i] = largest;
        }
    });
}
/// The gradient goes to the first place that holds what was pooled, and nowhere where none does.
int cudnnPoolingBackward(fake_dnn* handle, fake_pooling* how, void const*, fake_tensor* y_of, void const* y, fake_tensor* dy_of,
                         void const* dy, fake_tensor* x_of, void const* x, void const*, fake_tensor* dx_of, void* dx) {
    int const step = how->window;
    if (*y_of != *dy_of || *x_of != *dx_of || *y_of != fake_tensor{x_of->n, x_of->c, x_of->h / step, x_of->w / step})
        return bad_parameter;
    return put_work(handle->stream, [=, xs = *x_of, ys = *y_of] {
        auto* const out = static_cast<float*>(dx);
        std::fill_n(out, xs.size(), 0.0f);
        for (std::ptrdiff_t i = 0; i < ys.size(); ++i) {
            auto const px = static_cast<int>(i % ys.w), py = static_cast<int>(i / ys.w % ys.h);
            auto const plane = i / (ys.w * ys.h) * xs.w * xs.h;
            for (int k = 0; k < step * step; ++k) {
                auto const place = plane + (py * step + k / step) * xs.w + px * step + k % step;
                if (floats(x)[place] != floats(y)[i]) continue;
                out[place] = floats(dy)[i];
                break;
            }
        }
    });
}

int cudnnActivationForward(fake_dnn* handle, int*, void const*, fake_tensor* x_of, void const* x, void const*, fake_tensor* y_of,
                           void* y) {
    if (*x_of != *y_of) return bad_parameter;
    return put_work(handle->stream, [=, count = x_of->size()] {
        for (std::ptrdiff_t i = 0; i < count; ++i) static_cast<float*>(y)[i] = floats(x)[i] > 0 ? floats(x)[i] : 0.0f;
    });
}
int cudnnActivationBackward(fake_dnn* handle, int*, void const*, fake_tensor* y_of, void const* y, fake_tensor* dy_of,
                            void const* dy, fake_tensor* x_of, void const*, void const*, fake_tensor* dx_of, void* dx) {
    if (*y_of != *dy_of || *x_of != *dx_of || *x_of != *y_of) return bad_parameter;
    return put_work(handle->stream, [=, count = x_of->size()] {
        for (std::ptrdiff_t i = 0; i < count; ++i) static_cast<float*>(dx)[i] = floats(y)[i] > 0 ? floats(dy)[i] : 0.0f;
    });
}
int cudnnSoftmaxForward(fake_dnn* handle, int kind, int mode, void const*, fake_tensor* x_of, void const* x, void const*,
                        fake_tensor* y_of, void* y) {
    if (kind != 2 || mode != 0 || *x_of != *y_of) return bad_parameter;
    return put_work(handle->stream, [=, images = x_of->n, width = x_of->size() / x_of->n] {
        for (int n = 0; n < images; ++n) {
            float const* const row = floats(x) + n * width;
            float const largest = *std::max_element(row, row + width);
            double total = 0;
            for (std::ptrdiff_t k = 0; k < width; ++k) total += std::exp(double{row[k]} - double{largest});
            for (std::ptrdiff_t k = 0; k < width; ++k)
                static_cast<float*>(y)[n * width + k] = static_cast<float>(double{row[k]} - double{largest} - std::log(total));
        }
    });
}
}
