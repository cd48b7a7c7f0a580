// Gradients against central differences in double precision, layer by layer and through the whole network, dropout masks held.
#include <gtest/gtest.h>

#include <functional>

#include "base/error.hpp"
#include "bench/network/choose_kernels.hpp"
#include "bench/network/convolution_layer.hpp"
#include "bench/network/linear_layer.hpp"
#include "bench/network/max_pool_layer.hpp"
#include "bench/network/window_layer.hpp"
#include "tests/unit/bench/reference.hpp"

namespace muster {
namespace {

using reference::values;

class gradients : public testing::TestWithParam<kernel_choice> {
  protected:
    void SetUp() override {
        if (!GetParam().supported) GTEST_SKIP() << "this processor has no " << GetParam().name;
    }
    kernel_table const& k() const { return *GetParam().kernels; }
};

double central_difference(std::function<double()> const& f, double& x) {
    double const step = 1e-5, at = x;
    x = at + step;
    double const above = f();
    x = at - step;
    double const below = f();
    x = at;
    return (above - below) / (2 * step);
}

struct layer_under_test {
    std::vector<float> parameters, gradients, in, out, out_gradient, in_gradient;
    layer_under_test(layer& l, tensor_format const& out_gradient_format, int images) {
        random_stream const stream(3, 3);
        std::uint64_t draw = 0;
        auto const fill = [&](std::vector<float>& to, std::size_t count) {
            to.resize(count);
            for (float& x : to) x = stream.uniform(draw++) - 0.5f;
        };
        std::size_t count = 0;
        for (auto const& p : l.parameters()) count += p.count();
        auto const n = static_cast<std::size_t>(images);
        fill(parameters, count);
        fill(in, n * l.in_format().image_step);
        fill(out_gradient, n * out_gradient_format.image_step);
        gradients.resize(count);
        out.resize(n * l.out_format().image_step);
        in_gradient.resize(n * l.in_gradient_format().image_step);
        l.bind(parameters, gradients);
        l.resample(random_stream(9, 9), images);
    }
};

std::size_t place(tensor_format const& f, int n, int c, int y, int x) {
    return static_cast<std::size_t>(n * f.image_step + c * f.channel_step + y * f.row_step + x * f.pixel_step);
}

// One image of a batch without its padding, in double.
values dense(std::vector<float> const& from, tensor_format const& f, int n) {
    values out;
    for (int c = 0; c < f.channels; ++c) {
        for (int y = 0; y < f.height; ++y) {
            for (int x = 0; x < f.width; ++x) out.push_back(from[place(f, n, c, y, x)]);
        }
    }
    return out;
}

// The objective is the sum of out * out_gradient, whose gradients are what backward gives.
void check_layer(layer& l, tensor_format const& back, int images,
                 std::function<values(values const&, values const&, int)> const& forward) {
    layer_under_test t(l, back, images);
    l.forward(images, t.in.data(), t.out.data(), true);
    l.backward(images, t.in.data(), t.out.data(), t.out_gradient.data(), t.in_gradient.data());
    values parameters(t.parameters.begin(), t.parameters.end());
    std::vector<values> in, weight;
    for (int n = 0; n < images; ++n) {
        in.push_back(dense(t.in, l.in_format(), n));
        weight.push_back(dense(t.out_gradient, back, n));
        auto const got = dense(t.out, l.out_format(), n), want = forward(in.back(), parameters, n);
        for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-5) << "output " << i;
    }
    auto const objective_of = [&](int n) {
        auto const out = forward(in[n], parameters, n);
        double sum = 0;
        for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * weight[n][i];
        return sum;
    };
    auto const objective = [&] {
        double sum = 0;
        for (int n = 0; n < images; ++n) sum += objective_of(n);
        return sum;
    };
    for (std::size_t i = 0; i<parameters.size(); i += parameters.size()> 400 ? 97 : 1)
        ASSERT_NEAR(t.gradients[i], central_difference(objective, parameters[i]), 2e-4) << "parameter " << i;
    for (std::size_t i = parameters.size() - std::min<std::size_t>(5, parameters.size()); i < parameters.size(); ++i)
        ASSERT_NEAR(t.gradients[i], central_difference(objective, parameters[i]), 2e-4) << "bias " << i;
    auto const got = dense(t.in_gradient, l.in_gradient_format(), images - 1);
    for (std::size_t i = 0; i<got.size(); i += got.size()> 400 ? std::size_t{37} : std::size_t{1})
        ASSERT_NEAR(got[i], central_difference([&] { return objective_of(images - 1); }, in[images - 1][i]), 2e-4)
            << "input " << i;
}

void check_convolution(kernel_table const& k, int in_channels, int out_channels, int size, float dropout, int in_row,
                       int images) {
    int const half = size / 2, out_row = half % 8 == 0 ? half : half + 4;
    tensor_format const out{out_channels, half, half, out_channels * half * out_row, half * out_row, out_row, 1};
    convolution_layer l({"c", in_channels, out_channels, size, dropout, in_row, out, out, 5}, k);
    check_layer(l, out, images, [&](values const& in, values const& p, int n) {
        auto const split = p.end() - out_channels;
        std::vector<double> factor;
        for (int c = 0; c < out_channels; ++c) factor.push_back(l.dropout_factor(n, c));
        return reference::convolution(in, in_channels, out_channels, size, {p.begin(), split}, {split, p.end()}, factor);
    });
}

TEST_P(gradients, of_a_convolution) {
    check_convolution(k(), 1, 10, 24, 0, 32, 1);
}
TEST_P(gradients, of_a_convolution_with_channel_dropout) {
    check_convolution(k(), 10, 20, 8, 0.5f, 16, 3);
}
TEST_P(gradients, of_a_convolution_with_odd_channels) {
    check_convolution(k(), 3, 7, 8, 0.3f, 16, 2);
}

// Padding at every border, both strides, and channels that leave a rest in every block of the matrix product.
TEST_P(gradients, of_a_window) {
    struct form {
        int in, out, size, stride;
    };
    for (auto const& f : {form{3, 7, 8, 2}, form{19, 37, 4, 1}, form{2, 5, 6, 1}}) {
        window_layer l({"w", f.in, f.out, f.size, f.stride, true, 3}, k());
        check_layer(l, l.out_format(), 3, [&](values const& in, values const& p, int) {
            auto const split = p.end() - f.out;
            return reference::window(in, f.in, f.out, f.size, f.stride, {p.begin(), split}, {split, p.end()});
        });
    }
}

TEST_P(gradients, of_max_pooling_with_dropout) {
    for (bool const planes : {false, true}) {
        for (float const dropout : {0.0f, 0.5f}) {
            if (dropout > 0 && !planes) continue;  // its factors are numbered plane after plane
            max_pool_layer l({"p", 5, 4, planes, dropout, 3});
            check_layer(l, l.out_format(), 3, [&](values const& in, values const&, int n) {
                std::vector<double> factor;
                for (int u = 0; u < 20; ++u) factor.push_back(l.dropout_factor(n, u));
                return reference::pool(in, 5, 4, factor);
            });
        }
    }
}

// Through the blocked matrix product, against the kernels of small layers.
TEST_P(gradients, of_a_large_linear_layer) {
    linear_layer::options const what{"large", 1024, 1024, true, 0.5f, 3};
    linear_layer l(what, k());
    layer_under_test t(l, l.out_format(), 3);
    l.forward(3, t.in.data(), t.out.data(), true);
    l.backward(3, t.in.data(), t.out.data(), t.out_gradient.data(), t.in_gradient.data());
    auto const weight = [&](int o, int i) { return double{t.parameters[static_cast<std::size_t>(o) * 1024 + i]}; };
    auto const masked = [&](int n, int o) {
        auto const at = static_cast<std::size_t>(n) * 1024 + o;
        return t.out[at] > 0 ? double{t.out_gradient[at]} * l.dropout_factor(n, o) : 0.0;
    };
    for (int step = 0; step < 1024; step += 31) {
        int const n = step % 3, o = step, i = 1023 - step;
        double sum = t.parameters[1024 * 1024 + static_cast<std::size_t>(o)], back = 0, gradient = 0;
        for (int j = 0; j < 1024; ++j) {
            sum += weight(o, j) * t.in[static_cast<std::size_t>(n) * 1024 + j];
            back += masked(n, j) * weight(j, i);
        }
        for (int m = 0; m < 3; ++m) gradient += masked(m, o) * t.in[static_cast<std::size_t>(m) * 1024 + i];
        ASSERT_NEAR(t.out[static_cast<std::size_t>(n) * 1024 + o], std::max(0.0, sum) * l.dropout_factor(n, o), 2e-4) << o;
        ASSERT_NEAR(t.in_gradient[static_cast<std::size_t>(n) * 1024 + i], back, 2e-4) << i;
        ASSERT_NEAR(t.gradients[static_cast<std::size_t>(o) * 1024 + i], gradient, 2e-5) << o << ' ' << i;
    }
}

TEST_P(gradients, of_a_linear_layer) {
    for (auto const& what : {linear_layer::options{"a", 320, 50, true, 0.5f, 5}, linear_layer::options{"b", 50, 10, false, 0, 5},
                             linear_layer::options{"c", 9, 5, true, 0, 5}}) {
        linear_layer l(what, k());
        check_layer(l, l.out_format(), 5, [&](values const& in, values const& p, int n) {
            auto const split = p.end() - what.out;
            std::vector<double> factor;
            for (int o = 0; o < what.out; ++o) factor.push_back(l.dropout_factor(n, o));
            return reference::linear(in, what.out, {p.begin(), split}, {split, p.end()}, what.relu, factor);
        });
    }
}

// Padding of the inputs must be zero for the layer above, which the network sees to; here it is noise in the tests' buffers for
// convolutions only.
TEST_P(gradients, of_the_whole_network) {
    for (int images : {1, 2}) {
        mnist_network net(4, k());
        net.initialise(42);
        reference::batch const batch(images);
        net.load(batch.images, images);
        net.resample(42, 17);
        net.forward(true);
        auto const result = net.backward(batch.labels);
        reference::network r(net);
        ASSERT_NEAR(result.loss_sum / images, r.mean_loss(batch.images, batch.labels, true), 1e-5);
        for (auto const& p : net.table()) {
            std::size_t const count = p.shape.count(), stride = count > 30 ? count / 7 : 3;
            for (std::size_t i = 0; i < count; i += stride) {
                double const want =
                    central_difference([&] { return r.mean_loss(batch.images, batch.labels, true); }, r.parameters[p.first + i]);
                ASSERT_NEAR(net.gradients()[p.first + i], want, 1e-4 * std::max(1.0, std::abs(want)))
                    << p.shape.name << '[' << i << "], batch of " << images;
            }
        }
    }
}

TEST_P(gradients, a_partial_batch_after_a_full_one_leaves_no_trace) {
    reference::batch const full(64), part(5, 8);
    mnist_network used(64, k()), fresh(64, k());
    for (auto* net : {&used, &fresh}) net->initialise(1);
    used.load(full.images, 64);
    used.resample(1, 0);
    used.forward(true);
    used.backward(full.labels);
    for (auto* net : {&used, &fresh}) {
        net->load(part.images, 5);
        net->resample(1, 1);
        net->forward(true);
        net->backward(part.labels);
    }
    EXPECT_TRUE(std::equal(used.gradients().begin(), used.gradients().end(), fresh.gradients().begin()));
}

INSTANTIATE_TEST_SUITE_P(isa, gradients, testing::ValuesIn(kernel_choices().begin(), kernel_choices().end()),
                         [](auto const& param_info) { return std::string(param_info.param.name); });

}  // namespace
}  // namespace muster
