#include "bench/tools/gradient_sets.hpp"

#include <array>
#include <numeric>

#include "base/throw_error.hpp"

namespace muster {

namespace {

void add(std::vector<std::size_t>& to, std::initializer_list<std::size_t> tensors) {
    for (std::size_t const each : tensors) to.push_back(each);
}

/// Adds a convolution without bias and the scale and shift of the batch normalisation after it.
void add_convolution(std::vector<std::size_t>& to, std::size_t in, std::size_t out, std::size_t kernel) {
    add(to, {in * out * kernel * kernel, out, out});
}

/// The same, with its work on `size` by `size` output pixels.
void add_convolution(gradient_set& to, std::size_t in, std::size_t out, std::size_t kernel, std::size_t size) {
    add_convolution(to.elements, in, out, kernel);
    to.work.insert(to.work.end(), {static_cast<double>(in * out * kernel * kernel * size * size), 0, 0});
}

gradient_set resnet50() {
    gradient_set set{"resnet50", "He et al. 2015 (arXiv 1512.03385), table 1, as in torchvision", {}};
    add_convolution(set, 3, 64, 7, 112);
    std::size_t in = 64;
    constexpr std::array<std::size_t, 4> blocks{3, 4, 6, 3};
    for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
        std::size_t const width = std::size_t{64} << stage, out = 4 * width, size = std::size_t{56} >> stage;
        for (std::size_t block = 0; block < blocks[stage]; ++block) {
            add_convolution(set, in, width, 1, block == 0 && stage > 0 ? 2 * size : size);
            add_convolution(set, width, width, 3, size);
            add_convolution(set, width, out, 1, size);
            if (block == 0) add_convolution(set, in, out, 1, size);  // the shortcut
            in = out;
        }
    }
    add(set.elements, {in * 1000, 1000});
    set.work.insert(set.work.end(), {static_cast<double>(in * 1000), 0});
    return set;
}

gradient_set cifar() {
    gradient_set set{"cifar", "ResNet-20 for CIFAR-10: He et al. 2015 (arXiv 1512.03385), section 4.2", {}};
    auto& to = set.elements;
    add_convolution(to, 3, 16, 3);
    std::size_t in = 16;
    for (std::size_t const width : {std::size_t{16}, std::size_t{32}, std::size_t{64}})
        for (int convolution = 0; convolution < 6; ++convolution) {
            add_convolution(to, in, width, 3);
            in = width;
        }
    add(to, {in * 10, 10});
    return set;
}

/// Adds a convolution or a dense layer with bias.
void add_layer(std::vector<std::size_t>& to, std::size_t in, std::size_t out, std::size_t kernel = 1) {
    add(to, {in * out * kernel * kernel, out});
}

gradient_set cifar10() {
    gradient_set set{
        "cifar10", "the AlexNet-like network of the published table: five 3x3 convolutions, dense 1024-4096-4096-10", {}};
    std::size_t in = 3;
    for (std::size_t const out : {64, 192, 384, 256, 256}) {
        add_layer(set.elements, in, out, 3);
        in = out;
    }
    add_layer(set.elements, 1024, 4096);
    add_layer(set.elements, 4096, 4096);
    add_layer(set.elements, 4096, 10);
    return set;
}

gradient_set gpt2() {
    gradient_set set{"gpt2", "Radford et al. 2019, the smallest model: 12 layers of width 768, 50257 tokens, 1024 places", {}};
    auto& to = set.elements;
    constexpr std::size_t width = 768;
    add(to, {50257 * width, 1024 * width});
    for (int layer = 0; layer < 12; ++layer)
        add(to, {width, width, width * 3 * width, 3 * width, width * width, width, width, width, width * 4 * width, 4 * width,
                 4 * width * width, width});
    add(to, {width, width});
    // Each matrix multiplies a token once. The tokens' table is the last matrix too, but its gradient is ready last.
    for (auto const elements : to) set.work.push_back(elements >= width * width ? static_cast<double>(elements) : 0);
    set.work[set.work.size() - 1] = set.work[0];
    set.work[0] = set.work[1] = 0;
    return set;
}

gradient_set mnist() {
    return {"mnist",
            "the network of the published table (examples/published_table.py)",
            {10 * 25, 10, 20 * 10 * 25, 20, 50 * 320, 50, 10 * 50, 10}};
}

}  // namespace

std::size_t gradient_set::parameters() const noexcept {
    return std::accumulate(elements.begin(), elements.end(), std::size_t{0});
}

gradient_set gradients_of(std::string_view name) {
    if (name == "gpt2-small") name = "gpt2";
    for (auto* const make : {resnet50, cifar, cifar10, mnist, gpt2})
        if (auto set = make(); set.name == name) return set;
    throw_error(errc::usage, "no gradients of '{}'; give resnet50, cifar, cifar10, mnist or gpt2", name);
}

}  // namespace muster
