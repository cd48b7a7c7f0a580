// The benchmark's network from oneDNN primitives, one thread: what "a well-kept library" would give in place of kernels_body.inc.
// Not built by default; docs/benchmarking.md tells how and what it measured. ReLU, dropout, softmax and the optimiser are left
// out, in the library's favour.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <dnnl.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

using dnnl::memory;
using tag = memory::format_tag;
using type = memory::data_type;
using dims = memory::dims;

constexpr int batch = 64;
dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
dnnl::stream stream(cpu);

memory::desc any(dims const& d) {
    return {d, type::f32, tag::any};
}

// Processor time: a single thread computes, and other load on the machine counts little.
double seconds_used() {
    timespec t{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// A primitive with its arguments, ready to run.
struct step {
    std::string name;
    dnnl::primitive run;
    std::unordered_map<int, memory> args;
    double dense_mflop;  // an image
};

memory filled(memory::desc const& d) {
    memory m(d, cpu);
    auto* const values = static_cast<float*>(m.get_data_handle());
    for (std::size_t i = 0; i < d.get_size() / sizeof(float); ++i) values[i] = static_cast<float>(i % 17) / 17 - 0.4f;
    return m;
}

void add_convolution(std::vector<step>& steps, std::string const& name, int in, int out, int size, bool input_gradient) {
    dims const src{batch, in, size + 4, size + 4}, weights{out, in, 5, 5}, bias{out}, dst{batch, out, size, size}, one{1, 1},
        none{0, 0};
    auto const algorithm = dnnl::algorithm::convolution_auto;
    double const mflop = 2.0 * size * size * out * in * 25 / 1e6;
    dnnl::convolution_forward::primitive_desc const forward(
        {dnnl::prop_kind::forward_training, algorithm, any(src), any(weights), any(bias), any(dst), one, none, none}, cpu);
    auto x = filled(forward.src_desc()), w = filled(forward.weights_desc()), b = filled(forward.bias_desc()),
         y = filled(forward.dst_desc());
    steps.push_back({name + " forward",
                     dnnl::convolution_forward(forward),
                     {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_BIAS, b}, {DNNL_ARG_DST, y}},
                     mflop});
    dnnl::convolution_backward_weights::primitive_desc const bw(
        {algorithm, any(src), any(weights), any(bias), any(dst), one, none, none}, cpu, forward);
    steps.push_back({name + " weight gradient",
                     dnnl::convolution_backward_weights(bw),
                     {{DNNL_ARG_SRC, filled(bw.src_desc())},
                      {DNNL_ARG_DIFF_DST, filled(bw.diff_dst_desc())},
                      {DNNL_ARG_DIFF_WEIGHTS, filled(bw.diff_weights_desc())},
                      {DNNL_ARG_DIFF_BIAS, filled(bw.diff_bias_desc())}},
                     mflop});
    if (!input_gradient) return;
    dnnl::convolution_backward_data::primitive_desc const bd({algorithm, any(src), any(weights), any(dst), one, none, none}, cpu,
                                                             forward);
    steps.push_back({name + " input gradient",
                     dnnl::convolution_backward_data(bd),
                     {{DNNL_ARG_WEIGHTS, filled(bd.weights_desc())},
                      {DNNL_ARG_DIFF_DST, filled(bd.diff_dst_desc())},
                      {DNNL_ARG_DIFF_SRC, filled(bd.diff_src_desc())}},
                     mflop});
}

void add_pooling(std::vector<step>& steps, std::string const& name, int channels, int size) {
    memory::desc const src({batch, channels, size, size}, type::f32, tag::nChw16c);
    dims const dst{batch, channels, size / 2, size / 2}, two{2, 2}, none{0, 0};
    auto const algorithm = dnnl::algorithm::pooling_max;
    dnnl::pooling_forward::primitive_desc const forward(
        {dnnl::prop_kind::forward_training, algorithm, src, any(dst), two, two, none, none}, cpu);
    auto workspace = memory(forward.workspace_desc(), cpu);
    auto x = filled(forward.src_desc()), y = filled(forward.dst_desc());
    steps.push_back({name + " forward",
                     dnnl::pooling_forward(forward),
                     {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}, {DNNL_ARG_WORKSPACE, workspace}},
                     0});
    dnnl::pooling_backward::primitive_desc const backward({algorithm, src, any(dst), two, two, none, none}, cpu, forward);
    steps.push_back({name + " backward",
                     dnnl::pooling_backward(backward),
                     {{DNNL_ARG_DIFF_DST, filled(backward.diff_dst_desc())},
                      {DNNL_ARG_DIFF_SRC, filled(backward.diff_src_desc())},
                      {DNNL_ARG_WORKSPACE, workspace}},
                     0});
}

void add_linear(std::vector<step>& steps, std::string const& name, int in, int out) {
    dims const src{batch, in}, weights{out, in}, bias{out}, dst{batch, out};
    double const mflop = 2.0 * in * out / 1e6;
    dnnl::inner_product_forward::primitive_desc const forward(
        {dnnl::prop_kind::forward_training, any(src), any(weights), any(bias), any(dst)}, cpu);
    steps.push_back({name + " forward",
                     dnnl::inner_product_forward(forward),
                     {{DNNL_ARG_SRC, filled(forward.src_desc())},
                      {DNNL_ARG_WEIGHTS, filled(forward.weights_desc())},
                      {DNNL_ARG_BIAS, filled(forward.bias_desc())},
                      {DNNL_ARG_DST, filled(forward.dst_desc())}},
                     mflop});
    dnnl::inner_product_backward_weights::primitive_desc const bw({any(src), any(weights), any(bias), any(dst)}, cpu, forward);
    steps.push_back({name + " weight gradient",
                     dnnl::inner_product_backward_weights(bw),
                     {{DNNL_ARG_SRC, filled(bw.src_desc())},
                      {DNNL_ARG_DIFF_DST, filled(bw.diff_dst_desc())},
                      {DNNL_ARG_DIFF_WEIGHTS, filled(bw.diff_weights_desc())},
                      {DNNL_ARG_DIFF_BIAS, filled(bw.diff_bias_desc())}},
                     mflop});
    dnnl::inner_product_backward_data::primitive_desc const bd({any(src), any(weights), any(dst)}, cpu, forward);
    steps.push_back({name + " input gradient",
                     dnnl::inner_product_backward_data(bd),
                     {{DNNL_ARG_WEIGHTS, filled(bd.weights_desc())},
                      {DNNL_ARG_DIFF_DST, filled(bd.diff_dst_desc())},
                      {DNNL_ARG_DIFF_SRC, filled(bd.diff_src_desc())}},
                     mflop});
}

}  // namespace

int main() {
    std::vector<step> steps;
    add_convolution(steps, "conv1", 1, 10, 24, false);
    add_pooling(steps, "pool1", 16, 24);
    add_convolution(steps, "conv2", 10, 20, 8, true);
    add_pooling(steps, "pool2", 32, 8);
    add_linear(steps, "fc1", 320, 50);
    add_linear(steps, "fc2", 50, 10);
    constexpr int rounds = 300, repeats = 9;
    double total = 0;
    for (auto& s : steps) {
        std::vector<double> seconds;
        for (int r = 0; r < repeats; ++r) {
            double const begin = seconds_used();
            for (int i = 0; i < rounds; ++i) s.run.execute(stream, s.args);
            stream.wait();
            seconds.push_back((seconds_used() - begin) / rounds / batch);
        }
        std::sort(seconds.begin(), seconds.end());
        double const us = seconds[repeats / 2] * 1e6;
        total += us;
        std::printf("%-24s %7.3f us an image  %6.1f GFLOP/s\n", s.name.c_str(), us, s.dense_mflop / us * 1e3);
    }
    auto const* const v = dnnl_version();
    std::printf("all                      %7.3f us an image, at most %.0f images/s; oneDNN %d.%d.%d\n", total, 1e6 / total,
                v->major, v->minor, v->patch);
}
