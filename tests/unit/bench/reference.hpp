// A reference of the network and its layers: computes in double precision with plain loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/network/published/mnist_network.hpp"

namespace muster::reference {

using values = std::vector<double>;

/// relu(maxpool2(factor * (conv5x5(in) + bias))) of one image; in [in_channels][size+4]^2, weights [out][in][5][5].
inline values convolution(values const& in, int in_channels, int out_channels, int size, values const& weights,
                          values const& bias, std::vector<double> const& factor) {
    int const wide = size + 4, half = size / 2;
    values out;
    for (int o = 0; o < out_channels; ++o) {
        values plane(static_cast<std::size_t>(size * size));
        for (int y = 0; y < size; ++y) {
            for (int x = 0; x < size; ++x) {
                double sum = bias[o];
                for (int i = 0; i < in_channels; ++i) {
                    for (int ky = 0; ky < 5; ++ky) {
                        for (int kx = 0; kx < 5; ++kx)
                            sum += in[(i * wide + y + ky) * wide + x + kx] * weights[((o * in_channels + i) * 5 + ky) * 5 + kx];
                    }
                }
                plane[y * size + x] = sum * factor[o];
            }
        }
        for (int y = 0; y < half; ++y) {
            for (int x = 0; x < half; ++x) {
                auto const at = [&](int dy, int dx) { return plane[(2 * y + dy) * size + 2 * x + dx]; };
                out.push_back(std::max({0.0, at(0, 0), at(0, 1), at(1, 0), at(1, 1)}));
            }
        }
    }
    return out;
}

/// relu(conv3x3(in) + bias) of one image with a padding of 1; in [in_channels][size]^2, weights [out][in][3][3].
inline values window(values const& in, int in_channels, int out_channels, int size, int stride, values const& weights,
                     values const& bias) {
    int const out_size = size / stride;
    values out;
    for (int o = 0; o < out_channels; ++o) {
        for (int y = 0; y < out_size; ++y) {
            for (int x = 0; x < out_size; ++x) {
                double sum = bias[o];
                for (int i = 0; i < in_channels; ++i) {
                    for (int tap = 0; tap < 9; ++tap) {
                        int const fy = y * stride + tap / 3 - 1, fx = x * stride + tap % 3 - 1;
                        if (fy < 0 || fx < 0 || fy >= size || fx >= size) continue;
                        sum += in[(i * size + fy) * size + fx] * weights[(o * in_channels + i) * 9 + tap];
                    }
                }
                out.push_back(std::max(0.0, sum));
            }
        }
    }
    return out;
}

/// factor * maxpool2(in), a factor an output.
inline values pool(values const& in, int channels, int size, std::vector<double> const& factor) {
    values out;
    for (int c = 0; c < channels; ++c) {
        for (int y = 0; y < size; y += 2) {
            for (int x = 0; x < size; x += 2) {
                auto const at = [&](int dy, int dx) { return in[(c * size + y + dy) * size + x + dx]; };
                out.push_back(std::max({at(0, 0), at(0, 1), at(1, 0), at(1, 1)}) * factor[out.size()]);
            }
        }
    }
    return out;
}

/// factor * (in * weights^T + bias), with ReLU before the factor if asked.
inline values linear(values const& in, int outputs, values const& weights, values const& bias, bool relu,
                     std::vector<double> const& factor) {
    values out;
    for (int o = 0; o < outputs; ++o) {
        double sum = bias[o];
        for (std::size_t k = 0; k < in.size(); ++k) sum += in[k] * weights[o * in.size() + k];
        out.push_back((relu && sum < 0 ? 0.0 : sum) * factor[o]);
    }
    return out;
}

inline double nll(values const& outputs, int label) {
    double largest = outputs[0], total = 0;
    for (double x : outputs) largest = std::max(largest, x);
    for (double x : outputs) total += std::exp(x - largest);
    return std::log(total) + largest - outputs[label];
}

/// The parameters of the whole network by their place in mnist_network::parameters().
struct network {
    explicit network(mnist_network& of) : net(&of), parameters(of.parameters().begin(), of.parameters().end()) {}

    values tensor(std::string_view name) const {
        for (auto const& p : net->table()) {
            if (p.shape.name != name) continue;
            auto const from = parameters.begin() + static_cast<std::ptrdiff_t>(p.first);
            return {from, from + static_cast<std::ptrdiff_t>(p.shape.count())};
        }
        return {};
    }
    std::vector<double> factors(std::size_t layer_index, int image, int units, bool training) const {
        std::vector<double> out(static_cast<std::size_t>(units), 1.0);
        for (int u = 0; u < units && training; ++u) out[u] = net->layers()[layer_index]->dropout_factor(image, u);
        return out;
    }
    values outputs(std::span<std::uint8_t const> images, int image, bool training) const {
        values in;
        for (int i = 0; i < 784; ++i) in.push_back((images[image * 784 + i] / 255.0 - 0.1307) / 0.3081);
        auto const a = convolution(in, 1, 10, 24, tensor("conv1.weight"), tensor("conv1.bias"), factors(0, image, 10, training));
        auto const b = convolution(a, 10, 20, 8, tensor("conv2.weight"), tensor("conv2.bias"), factors(1, image, 20, training));
        auto const c = linear(b, 50, tensor("fc1.weight"), tensor("fc1.bias"), true, factors(2, image, 50, training));
        return linear(c, 10, tensor("fc2.weight"), tensor("fc2.bias"), false, std::vector<double>(10, 1.0));
    }
    double mean_loss(std::span<std::uint8_t const> images, std::span<std::uint8_t const> labels, bool training) const {
        double sum = 0;
        for (std::size_t n = 0; n < labels.size(); ++n) sum += nll(outputs(images, static_cast<int>(n), training), labels[n]);
        return sum / static_cast<double>(labels.size());
    }

    mnist_network* net;
    values parameters;
};

/// Pixels and labels that look like images: a third of the pixels lit.
struct batch {
    std::vector<std::uint8_t> images, labels;
    explicit batch(int count, std::uint64_t seed = 7) {
        random_stream const stream(seed, 100);
        std::uint64_t draw = 0;
        for (int i = 0; i < count * 784; ++i) {
            auto const bits = stream.bits(draw++);
            images.push_back(bits % 3 == 0 ? static_cast<std::uint8_t>(bits >> 8) : std::uint8_t{0});
        }
        for (int i = 0; i < count; ++i) labels.push_back(static_cast<std::uint8_t>(stream.bits(draw++) % 10));
    }
};

}  // namespace muster::reference
