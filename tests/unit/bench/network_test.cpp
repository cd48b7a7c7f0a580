#include "bench/network/published/mnist_network.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/error.hpp"
#include "bench/network/choose_kernels.hpp"
#include "bench/network/published/cifar_network.hpp"
#include "bench/tools/gradient_sets.hpp"
#include "bench/training/training_split.hpp"
#include "tests/unit/bench/reference.hpp"

namespace muster {
namespace {

TEST(mnist_network, has_the_published_number_of_parameters_last_layer_first) {
    mnist_network net(1, choose_kernels());
    EXPECT_EQ(net.parameters().size(), 21840u);
    ASSERT_EQ(net.table().size(), 8u);
    EXPECT_EQ(net.table()[0].shape.name, "fc2.weight");
    EXPECT_EQ(net.table()[7].shape.name, "conv1.bias");
    std::size_t next = 0;
    for (auto const& p : net.table()) {
        EXPECT_EQ(p.first, next);
        next += p.shape.count();
    }
    EXPECT_EQ(next, 21840u);
}

TEST(cifar_network, has_the_published_number_of_parameters_last_layer_first) {
    cifar_network net(1, choose_kernels());
    EXPECT_EQ(net.parameters().size(), 23'272'266u);
    ASSERT_EQ(net.table().size(), 16u);
    EXPECT_EQ(net.table()[0].shape.name, "fc3.weight");
    EXPECT_EQ(net.table()[15].shape.name, "conv1.bias");
    auto const sizes = gradients_of("cifar10").elements;
    std::size_t at = 0;
    for (int layer = 7; layer >= 0; --layer) {
        EXPECT_EQ(net.table()[at++].shape.count(), sizes[static_cast<std::size_t>(2 * layer)]);
        EXPECT_EQ(net.table()[at++].shape.count(), sizes[static_cast<std::size_t>(2 * layer + 1)]);
    }
}

TEST(cifar_network, a_few_steps_lower_the_loss_and_a_partial_batch_leaves_no_trace) {
    auto const& k = choose_kernels();
    std::vector<std::uint8_t> images(8 * 3072), labels;
    for (std::uint64_t n = 0; n < 8; ++n)
        labels.push_back(generate_image(1, n, cifar_network::images, std::span(images).subspan(n * 3072, 3072)));
    cifar_network net(8, k, 0), fresh(8, k, 0);
    net.initialise(42);
    fresh.initialise(42);
    net.load(images, 8);
    net.forward(true);
    net.backward(labels);
    for (auto* each : {&net, &fresh}) {
        each->load(images, 3);
        each->forward(true);
        each->backward(std::span(labels).first(3));
    }
    EXPECT_TRUE(std::equal(net.gradients().begin(), net.gradients().end(), fresh.gradients().begin()));

    std::vector<float> velocity(net.parameters().size());
    double first = 0, last = 0;
    for (int step = 0; step < 12; ++step) {
        net.load(images, 8);
        net.forward(true);
        last = net.backward(labels).loss_sum;
        if (step == 0) first = last;
        k.sgd(net.parameters().data(), net.gradients().data(), velocity.data(), velocity.size(), 0.05f, 0.9f);
    }
    EXPECT_LT(last, 0.99 * first);
}

TEST(mnist_network, initialises_within_the_bounds_and_by_seed) {
    mnist_network a(1, choose_kernels()), b(1, choose_kernels("baseline"));
    a.initialise(42);
    b.initialise(42);
    EXPECT_TRUE(std::equal(a.parameters().begin(), a.parameters().end(), b.parameters().begin()));
    double largest = 0, sum = 0;
    auto const& fc1 = a.table()[2];
    ASSERT_EQ(fc1.shape.name, "fc1.weight");
    for (float p : a.parameters().subspan(fc1.first, fc1.shape.count())) {
        largest = std::max(largest, std::abs(double{p}));
        sum += p;
    }
    double const bound = 1 / std::sqrt(320.0);
    EXPECT_LE(largest, bound);
    EXPECT_GT(largest, 0.99 * bound);
    EXPECT_NEAR(sum / 16000, 0, 0.02 * bound);
    b.initialise(43);
    EXPECT_FALSE(std::equal(a.parameters().begin(), a.parameters().end(), b.parameters().begin()));
}

TEST(mnist_network, says_when_gradients_are_ready_in_order) {
    mnist_network net(2, choose_kernels());
    net.initialise(1);
    reference::batch const batch(2);
    net.load(batch.images, 2);
    net.resample(1, 1);
    net.forward(true);
    std::vector<std::size_t> order;
    net.backward(batch.labels, [&](std::size_t i) { order.push_back(i); });
    EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(mnist_network, evaluation_uses_no_dropout) {
    mnist_network net(3, choose_kernels());
    net.initialise(5);
    reference::batch const batch(3);
    net.load(batch.images, 3);
    net.resample(5, 5);
    net.forward(false);
    auto const result = net.evaluate(batch.labels);
    reference::network const r(net);
    EXPECT_NEAR(result.loss_sum / 3, r.mean_loss(batch.images, batch.labels, false), 1e-5);
}

TEST(mnist_network, dropout_drops_about_half_and_differs_between_steps) {
    mnist_network net(64, choose_kernels());
    reference::batch const batch(64);
    net.load(batch.images, 64);
    net.resample(42, 1);
    int kept = 0;
    std::set<std::vector<float>> masks;
    for (int step = 0; step < 8; ++step) {
        net.resample(42, static_cast<std::uint64_t>(step));
        std::vector<float> mask;
        for (int n = 0; n < 64; ++n) {
            for (int c = 0; c < 20; ++c) {
                mask.push_back(net.layers()[1]->dropout_factor(n, c));
                ASSERT_TRUE(mask.back() == 0.0f || mask.back() == 2.0f);
                kept += mask.back() > 0;
            }
        }
        masks.insert(mask);
    }
    EXPECT_EQ(masks.size(), 8u);
    EXPECT_NEAR(kept, 64 * 20 * 8 / 2, 4 * std::sqrt(64 * 20 * 8 / 4.0));  // four standard deviations
}

TEST(softmax_loss, of_large_outputs_stays_finite_and_wrong_labels_are_named) {
    std::vector<float> const outputs{1000, 0, -1000, 0};
    std::vector<std::uint8_t> const label{2};
    auto const result = softmax_loss(outputs, 4, 3, label);
    EXPECT_NEAR(result.loss_sum, 2000, 1e-3);
    EXPECT_EQ(result.correct, 0);
    std::vector<std::uint8_t> const wrong{3};
    try {
        softmax_loss(outputs, 4, 3, wrong);
        FAIL();
    } catch (error const& e) {
        EXPECT_EQ(e.code(), errc::invalid_data);
        EXPECT_NE(std::string(e.what()).find("label 3"), std::string::npos) << e.what();
    }
}

// A few steps on one batch must lower its loss by a lot: the parts fit together.
TEST(mnist_network, learns_a_batch_by_heart) {
    auto const& k = choose_kernels();
    mnist_network net(16, k);
    net.initialise(42);
    reference::batch const batch(16);
    net.load(batch.images, 16);
    std::vector<float> velocity(net.parameters().size());
    net.forward(false);
    double const before = net.evaluate(batch.labels).loss_sum / 16;
    for (std::uint64_t step = 0; step < 400; ++step) {
        net.resample(42, step);
        net.forward(true);
        net.backward(batch.labels);
        k.sgd(net.parameters().data(), net.gradients().data(), velocity.data(), velocity.size(), 0.02f, 0.5f);
    }
    net.forward(false);
    auto const after = net.evaluate(batch.labels);
    EXPECT_GT(before, 2);
    EXPECT_LT(after.loss_sum / 16, 0.2);
    EXPECT_EQ(after.correct, 16);
}

}  // namespace
}  // namespace muster
