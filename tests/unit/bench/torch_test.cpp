// The network against PyTorch: same weights, images and dropout masks must give the same outputs, loss and gradients.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/process/process.hpp"
#include "base/process/run_captured.hpp"
#include "bench/network/choose_kernels.hpp"
#include "bench/network/published/cifar_network.hpp"
#include "bench/training/training_split.hpp"
#include "tests/unit/bench/reference.hpp"

namespace muster {
namespace {

// An interpreter that has torch; Debian's, where another hides it on PATH.
std::string python_with_torch(environment const& variables) {
    for (std::string const python : {"/usr/bin/python3", "python3"}) {
        if (find_program_or_nothing(python, variables).empty()) continue;
        if (run_program({python, "-c", "import torch, numpy"}, variables, {}).exit_status == 0) return python;
    }
    return {};
}

template <class T>
void put(std::ofstream& to, std::span<T const> values) {
    to.write(reinterpret_cast<char const*>(values.data()), static_cast<std::streamsize>(values.size_bytes()));
}

/// `masks`: the layers whose dropout factors are exported, and how many units each has.
void export_step(std::string const& path, network& net, std::span<std::uint8_t const> pixels,
                 std::span<std::uint8_t const> labels, std::vector<std::pair<int, int>> const& masked) {
    int const images = static_cast<int>(labels.size());
    net.load(pixels, images);
    net.resample(42, 5);
    auto const outputs = net.forward(true);
    auto const result = net.backward(labels);
    std::vector<float> rows, masks;
    for (int n = 0; n < images; ++n) {
        for (int k = 0; k < 10; ++k) rows.push_back(outputs[static_cast<std::size_t>(n * net.output_stride() + k)]);
        for (auto const& [layer, units] : masked)
            for (int u = 0; u < units; ++u) masks.push_back(net.layers()[static_cast<std::size_t>(layer)]->dropout_factor(n, u));
    }
    std::ofstream file(path, std::ios::binary);
    std::vector<std::int32_t> const header{net.input().channels, images};
    std::vector<float> const loss{static_cast<float>(result.loss_sum / images)};
    put(file, std::span<std::int32_t const>(header));
    put(file, std::span<std::uint8_t const>(pixels));
    put(file, std::span<std::uint8_t const>(labels));
    put(file, std::span<float const>(net.parameters()));
    put(file, std::span<float const>(masks));
    put(file, std::span<float const>(rows));
    put(file, std::span<float const>(loss));
    put(file, std::span<float const>(net.gradients()));
    ASSERT_TRUE(file.flush());
}

TEST(torch, gives_the_same_outputs_loss_and_gradients) {
    auto const variables = environment::capture();
    auto const python = python_with_torch(variables);
    if (python.empty()) {
        std::fputs(
            "SKIPPED: no python3 with torch and numpy here, so nothing was compared with PyTorch (Debian: apt install "
            "python3-torch)\n",
            stderr);
        GTEST_SKIP() << "no python3 with torch";
    }
    auto const folder = std::filesystem::temp_directory_path() / ("muster-torch-" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder);
    std::vector<std::string> command{python, MUSTER_SOURCE_DIR "/tests/unit/bench/compare_with_torch.py"};
    for (auto const& choice : kernel_choices()) {
        if (!choice.supported) continue;
        for (bool const dropout : {false, true}) {
            mnist_network net(64, *choice.kernels, dropout ? 0.5f : 0.0f);
            net.initialise(42);
            command.push_back((folder / (std::string(choice.name) + (dropout ? "-dropout" : ""))).string());
            reference::batch const batch(dropout ? 64 : 13);
            export_step(command.back(), net, batch.images, batch.labels, {{1, 20}, {2, 50}});
        }
    }
    // The large network once, with the best kernels: its files are 190 MB.
    cifar_network large(5, choose_kernels());
    large.initialise(42);
    std::vector<std::uint8_t> images(5 * 3072), labels;
    for (std::uint64_t n = 0; n < 5; ++n)
        labels.push_back(generate_image(1, n, cifar_network::images, std::span(images).subspan(n * 3072, 3072)));
    command.push_back((folder / "cifar10").string());
    export_step(command.back(), large, images, labels, {{7, 1024}, {8, 4096}});
    auto const result = run_program(command, variables, foreground());
    EXPECT_EQ(result.exit_status, 0) << result.out;
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace muster
