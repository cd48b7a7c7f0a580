#include "bench/network/published/cifar_network.hpp"

#include "bench/network/linear_layer.hpp"
#include "bench/network/max_pool_layer.hpp"
#include "bench/network/window_layer.hpp"

namespace muster {

namespace {

std::vector<std::unique_ptr<layer>> cifar_layers(int batch, kernel_table const& kernels, float dropout) {
    std::vector<std::unique_ptr<layer>> layers;
    auto const convolve = [&](char const* name, int in, int out, int size, int stride) {
        layers.push_back(
            std::make_unique<window_layer>(window_layer::options{name, in, out, size, stride, true, batch}, kernels));
    };
    auto const pool = [&](char const* name, int channels, int size, bool planes, float drop) {
        layers.push_back(std::make_unique<max_pool_layer>(max_pool_layer::options{name, channels, size, planes, drop, batch}));
    };
    auto const connect = [&](char const* name, int in, int out, bool relu, float drop) {
        layers.push_back(std::make_unique<linear_layer>(linear_layer::options{name, in, out, relu, drop, batch}, kernels));
    };
    convolve("conv1", 3, 64, 32, 2);
    pool("pool1", 64, 16, false, 0);
    convolve("conv2", 64, 192, 8, 1);
    pool("pool2", 192, 8, false, 0);
    convolve("conv3", 192, 384, 4, 1);
    convolve("conv4", 384, 256, 4, 1);
    convolve("conv5", 256, 256, 4, 1);
    pool("pool5", 256, 4, true, dropout);
    connect("fc1", 1024, 4096, true, dropout);
    connect("fc2", 4096, 4096, true, 0);
    connect("fc3", 4096, 10, false, 0);
    return layers;
}

}  // namespace

cifar_network::cifar_network(int max_batch, kernel_table const& kernels, float dropout)
    : network("cifar10", images, max_batch, kernels, cifar_layers(max_batch, kernels, dropout)) {}

}  // namespace muster
