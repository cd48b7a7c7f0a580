#include "bench/gpu/step/gpu_layers.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "bench/gpu/layers/gpu_convolution_layer.hpp"
#include "bench/gpu/layers/gpu_linear_layer.hpp"
#include "bench/gpu/layers/gpu_pool_layer.hpp"
#include "bench/network/published/cifar_network.hpp"
#include "bench/network/published/mnist_network.hpp"

namespace muster {

namespace {

/// Numbers the layers as it makes them: a layer's dropout is drawn by its number, which is that of the CPU's network.
struct gpu_layer_maker {
    int batch;
    gpu_compute const& with;
    cuda::step_arguments const* step;
    std::vector<std::unique_ptr<layer>> made{};

    unsigned number() const noexcept { return static_cast<unsigned>(made.size()); }
    void convolve(gpu_convolution_layer::options what) {
        what.max_batch = batch;
        what.number = number();
        made.push_back(std::make_unique<gpu_convolution_layer>(what, with, step));
    }
    void pool(char const* name, int channels, int size, float dropout) {
        made.push_back(std::make_unique<gpu_pool_layer>(gpu_pool_layer::options{name, channels, size, dropout, batch, number()},
                                                        with, step));
    }
    void connect(char const* name, int in, int out, bool relu, float dropout) {
        made.push_back(std::make_unique<gpu_linear_layer>(
            gpu_linear_layer::options{name, in, out, relu, dropout, batch, number()}, with, step));
    }
};

gpu_convolution_layer::options convolution_5x5(char const* name, int in, int out, int size, float dropout) {
    gpu_convolution_layer::options what;
    what.name = name;
    what.in_channels = in;
    what.out_channels = out;
    what.size = size;
    what.window = 5;
    what.pool = true;
    what.dropout = dropout;
    return what;
}

gpu_convolution_layer::options convolution_3x3(char const* name, int in, int out, int size, int stride = 1) {
    gpu_convolution_layer::options what;
    what.name = name;
    what.in_channels = in;
    what.out_channels = out;
    what.size = size;
    what.window = 3;
    what.padding = 1;
    what.stride = stride;
    return what;
}

void make_mnist(gpu_layer_maker& maker, float dropout) {
    maker.convolve(convolution_5x5("conv1", 1, 10, 28, 0));
    maker.convolve(convolution_5x5("conv2", 10, 20, 12, dropout));
    maker.connect("fc1", 320, 50, true, dropout);
    maker.connect("fc2", 50, 10, false, 0);
}

void make_cifar(gpu_layer_maker& maker, float dropout) {
    maker.convolve(convolution_3x3("conv1", 3, 64, 32, 2));
    maker.pool("pool1", 64, 16, 0);
    maker.convolve(convolution_3x3("conv2", 64, 192, 8));
    maker.pool("pool2", 192, 8, 0);
    maker.convolve(convolution_3x3("conv3", 192, 384, 4));
    maker.convolve(convolution_3x3("conv4", 384, 256, 4));
    maker.convolve(convolution_3x3("conv5", 256, 256, 4));
    maker.pool("pool5", 256, 4, dropout);
    maker.connect("fc1", 1024, 4096, true, dropout);
    maker.connect("fc2", 4096, 4096, true, 0);
    maker.connect("fc3", 4096, 10, false, 0);
}

}  // namespace

std::vector<std::unique_ptr<layer>> make_gpu_layers(std::string_view name, int max_batch, float dropout, gpu_compute const& with,
                                                    cuda::step_arguments const* step) {
    gpu_layer_maker maker{max_batch, with, step};
    if (&input_of_gpu_network(name) == &mnist_network::images)
        make_mnist(maker, dropout);
    else
        make_cifar(maker, dropout);
    return std::move(maker.made);
}

image_input const& input_of_gpu_network(std::string_view name) {
    if (name == "mnist") return mnist_network::images;
    if (name == "cifar10") return cifar_network::images;
    throw error(errc::usage, fmt::format("--net {}: a GPU trains mnist and cifar10; give one of them, or --device cpu", name));
}

}  // namespace muster
