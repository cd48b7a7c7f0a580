#include "bench/network/published/mnist_network.hpp"

#include "bench/network/convolution_layer.hpp"
#include "bench/network/linear_layer.hpp"

namespace muster {

namespace {

constexpr int input_row = 32;
constexpr int middle_row = 16, middle_plane = 12 * middle_row;  // a row is one cache line, and no load of a window leaves it

std::vector<std::unique_ptr<layer>> mnist_layers(int batch, kernel_table const& kernels, float dropout) {
    tensor_format const middle{10, 12, 12, 10 * middle_plane, middle_plane, middle_row, 1};
    tensor_format const flat{20, 4, 4, 320, 16, 4, 1};
    convolution_layer::options conv1{"conv1", 1, 10, 24, 0, input_row, middle, {}, batch};
    convolution_layer::options conv2{"conv2", 10, 20, 8, dropout, middle_row, flat, flat, batch};
    conv1.out_gradient = convolution_layer::input_gradient_format(10, 8, middle_row);
    std::vector<std::unique_ptr<layer>> layers;
    layers.push_back(std::make_unique<convolution_layer>(conv1, kernels));
    layers.push_back(std::make_unique<convolution_layer>(conv2, kernels));
    layers.push_back(std::make_unique<linear_layer>(linear_layer::options{"fc1", 320, 50, true, dropout, batch}, kernels));
    layers.push_back(std::make_unique<linear_layer>(linear_layer::options{"fc2", 50, 10, false, 0, batch}, kernels));
    return layers;
}

}  // namespace

mnist_network::mnist_network(int max_batch, kernel_table const& kernels, float dropout)
    : network("mnist", images, max_batch, kernels, mnist_layers(max_batch, kernels, dropout)) {}

}  // namespace muster
