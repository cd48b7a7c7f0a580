// The work of the GPU's own kernels, run on the host: the arithmetic and the draws of the CPU's training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "bench/gpu/library/network_body.hpp"
#include "bench/gpu/step/gpu_reducer.hpp"
#include "bench/network/choose_kernels.hpp"
#include "bench/network/loss.hpp"
#include "bench/network/published/cifar_network.hpp"
#include "bench/network/published/mnist_network.hpp"
#include "bench/tools/random.hpp"

namespace muster {
namespace {

/// As three threads of a launch do it.
template <typename Work>
void run_on_host(Work const& work) {
    for (std::uint64_t thread = 0; thread < 3; ++thread) cuda::run_share(work, thread, 3);
}

TEST(gpu_body, dropout_draws_what_the_cpu_draws) {
    random_stream const stream(42, 3, 17);
    cuda::step_arguments step{};
    step.keys[1] = stream.key();
    std::vector<float> in(60, 3.0f), out(60);
    cuda::dropout_work work{in.data(), out.data(), &step, in.size(), 4, 1, 0.25f, 1 / 0.75f};
    run_on_host(work);
    int dropped = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
        float const wanted = stream.uniform(i / 4) >= 0.25f ? 3.0f * (1 / 0.75f) : 0.0f;
        EXPECT_EQ(out[i], wanted) << i;
        dropped += wanted == 0;
    }
    EXPECT_GT(dropped, 0);
    EXPECT_LT(dropped, 60);
}

TEST(gpu_body, gather_takes_the_images_of_the_order) {
    std::vector<std::uint8_t> const images{0, 51, 102, 153, 204, 255}, labels{7, 8, 9};
    std::vector<std::uint32_t> const order{1, 1, 2, 0};
    cuda::step_arguments step{};
    step.first = 2;
    std::vector<float> out(4);
    std::vector<std::uint8_t> out_labels(2);
    cuda::gather_work work{
        images.data(), labels.data(), order.data(), &step, out.data(), out_labels.data(), 4, 2, 1 / 127.5f, -1, 0};
    run_on_host(work);
    EXPECT_THAT(out, testing::Pointwise(testing::FloatNear(1e-6f), {0.6f, 1.0f, -1.0f, -0.6f}));
    EXPECT_EQ(out_labels, (std::vector<std::uint8_t>{9, 7}));
}

TEST(gpu_body, loss_and_its_gradient_are_those_of_the_cpu) {
    constexpr int images = 5, classes = 10;
    random_stream const stream(1, 2);
    std::vector<float> outputs(images * classes), logs(outputs.size()), gradient(outputs.size()), wanted(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = 4 * stream.uniform(i) - 2;
    outputs[11] = outputs[14] = 3;  // equal ones: the first counts
    std::vector<std::uint8_t> const labels{0, 1, 4, 9, 5};
    for (int n = 0; n < images; ++n) {
        double total = 0;
        for (int k = 0; k < classes; ++k) total += std::exp(static_cast<double>(outputs[n * classes + k]));
        for (int k = 0; k < classes; ++k)
            logs[n * classes + k] = static_cast<float>(static_cast<double>(outputs[n * classes + k]) - std::log(total));
    }
    cuda::step_arguments step{};
    step.first = 3;
    step.share = 0.4f;
    std::vector<float> losses(3 + images);
    std::vector<std::uint8_t> hits(3 + images);
    cuda::loss_work work{outputs.data(), logs.data(), labels.data(), &step,   gradient.data(),
                         losses.data(),  hits.data(), images,        classes, 0};
    run_on_host(work);
    auto const cpu = softmax_loss(outputs, classes, classes, labels, wanted, 0.4f);
    EXPECT_THAT(gradient, testing::Pointwise(testing::FloatNear(1e-6f), wanted));
    double sum = 0;
    std::int64_t correct = 0;
    for (int n = 0; n < images; ++n) {
        sum += static_cast<double>(losses[3 + n]);
        correct += hits[3 + n];
    }
    EXPECT_NEAR(sum, cpu.loss_sum, 1e-5);
    EXPECT_EQ(correct, cpu.correct);
    EXPECT_EQ(losses[2], 0);
}

TEST(gpu_body, descent_is_that_of_the_cpu) {
    std::vector<float> parameters(20), gradients(20), velocity(20);
    random_stream const stream(1, 2);
    for (std::size_t i = 0; i < 20; ++i) {
        parameters[i] = stream.uniform(i);
        gradients[i] = stream.uniform(100 + i);
        velocity[i] = stream.uniform(200 + i);
    }
    auto wanted = parameters, wanted_velocity = velocity;
    choose_kernels().sgd(wanted.data(), gradients.data(), wanted_velocity.data(), 20, 0.1f, 0.5f);
    run_on_host(cuda::sgd_work{parameters.data(), gradients.data(), velocity.data(), 20, 0.1f, 0.5f});
    EXPECT_THAT(parameters, testing::Pointwise(testing::FloatNear(1e-6f), wanted));
    EXPECT_THAT(velocity, testing::Pointwise(testing::FloatNear(1e-6f), wanted_velocity));
}

/// Every gradient is in one bucket, which is not said to be complete before the layer that is completed last.
TEST(gpu_body, buckets_hold_every_gradient_once) {
    mnist_network mnist(1, choose_kernels(), 0);
    cifar_network cifar(1, choose_kernels(), 0);
    for (network const* const net : std::array<network const*, 2>{&mnist, &cifar}) {
        for (std::size_t const alignment : {std::size_t{1}, std::size_t{32}}) {
            parameter_table const table(net->layers(), alignment);
            EXPECT_EQ(table.parameters(), parameter_table(net->layers()).total());
            for (std::size_t const bytes : {std::size_t{1}, std::size_t{8} << 10, std::size_t{1} << 20, std::size_t{1} << 30}) {
                auto const buckets = plan_gpu_buckets(table, net->layers().size(), bytes);
                for (std::size_t i = 0; i < net->layers().size(); ++i) {
                    auto const& rows = table.of_layer(i);
                    for (std::size_t t = rows.first; t < rows.first + rows.count; ++t) {
                        auto const& row = table.rows()[t];
                        if (t == rows.first) {
                            EXPECT_EQ(row.first % alignment, 0u);
                        }
                        int holders = 0;
                        for (auto const& bucket : buckets) {
                            if (row.first < bucket.first || row.first >= bucket.first + bucket.count) continue;
                            ++holders;
                            EXPECT_LE(row.first + row.shape.count(), bucket.first + bucket.count);
                            EXPECT_GE(i, bucket.after_layer);
                        }
                        EXPECT_EQ(holders, 1);
                    }
                }
                if (bytes == std::size_t{1} << 30) {
                    EXPECT_EQ(buckets.size(), 1u);
                }
            }
        }
    }
}

}  // namespace
}  // namespace muster
