// Training on GPUs beside the same training on processors: the same images, dropouts and steps must give the same weights, but for
// rounding. Over the FAKE driver, cuDNN, cuBLAS and NCCL, whose streams run in the wrong order wherever nothing orders them.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "bench/network/choose_kernels.hpp"
#include "bench/training/gpu_trainer.hpp"
#include "pmix/identity.hpp"

namespace muster::test {

namespace {

std::optional<communicator> all_ranks;

communicator& ranks() {
    return *all_ranks;
}

void fake_set(char const* knob, int value) {
    auto* const library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    auto* const set = library == nullptr ? nullptr : reinterpret_cast<void (*)(char const*, int)>(::dlsym(library, "fake_set"));
    ASSERT_NE(set, nullptr) << "this test is for the fake driver";
    set(knob, value);
}

struct trained {
    std::vector<float> first_weights, weights;
    std::vector<epoch_record> epochs;
    train_record record;
};

trained train(training_options const& options, trainer& work) {
    trained out;
    work.prepare(out.record);
    auto const first = work.weights();
    out.first_weights.assign(first.begin(), first.end());
    for (int e = 0; e < options.epochs; ++e) {
        out.record.epochs_done.push_back(work.train(e));
        work.test(out.record.epochs_done.back(), e);
    }
    out.epochs = out.record.epochs_done;
    work.common_checksum("after training");
    work.describe(out.record);
    auto const last = work.weights();
    out.weights.assign(last.begin(), last.end());
    return out;
}

float largest_difference(std::vector<float> const& a, std::vector<float> const& b) {
    float largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest;
}

training_options small_mnist(std::size_t images) {
    training_options options;
    options.net = "mnist";
    options.seed = 1;  // with 42, two pixels of a window are equal but for rounding, and the largest is another on 2 ranks
    options.generated_train = images;
    options.generated_test = 21;
    options.epochs = 2;
    options.batch = 8;
    options.rate = 0.05;
    options.bucket_bytes = 8 << 10;
    return options;
}

/// Trains on both, the CPU by arithmetic that is the same on every machine; the GPU's training is given back.
trained expect_same(training_options options) {
    fake_set("last_first", 1);
    auto const on_cpu = train(options, *make_cpu_trainer(options, ranks(), choose_kernels("baseline")));
    options.on_gpu = true;
    auto const on_gpu = train(options, *make_gpu_trainer(options, ranks()));
    EXPECT_EQ(on_gpu.first_weights, on_cpu.first_weights);
    EXPECT_EQ(on_gpu.weights.size(), on_cpu.weights.size());
    EXPECT_GT(largest_difference(on_cpu.weights, on_cpu.first_weights), 1e-3f);  // it has learnt something that can differ
    EXPECT_LT(largest_difference(on_gpu.weights, on_cpu.weights), 2e-5f);
    for (std::size_t e = 0; e < on_cpu.epochs.size(); ++e) {
        auto const &cpu = on_cpu.epochs[e], &gpu = on_gpu.epochs[e];
        EXPECT_EQ(gpu.steps, cpu.steps);
        EXPECT_EQ(gpu.images, cpu.images);
        EXPECT_NEAR(gpu.train_loss, cpu.train_loss, 1e-4);
        EXPECT_NEAR(gpu.test_loss, cpu.test_loss, 1e-4);
        EXPECT_EQ(gpu.correct, cpu.correct);
        EXPECT_EQ(gpu.test_images, cpu.test_images);
    }
    EXPECT_EQ(on_gpu.record.gpu.name, "fake GPU");
    EXPECT_EQ(on_gpu.record.gpu.cudnn, "9.19.0");
    EXPECT_EQ(on_gpu.record.gpu.cublas, "13.1.0");
    return on_gpu;
}

/// 45 images leave the last step of an epoch fewer, 33 leave only rank 0 one.
TEST(gpu_training, a_step_as_one_graph) {
    for (std::size_t const images : {std::size_t{45}, std::size_t{33}}) {
        auto const done = expect_same(small_mnist(images));
        EXPECT_EQ(done.record.gpu.graphs, 1);
        EXPECT_EQ(done.record.gpu.reduction, ranks().size() > 1 ? "nccl in the graph" : "none: one rank");
    }
}

TEST(gpu_training, graphs_between_the_communicators_allreduces) {
    auto options = small_mnist(33);
    options.gpu.graph = graph_use::parts;
    auto const done = expect_same(options);
    if (ranks().size() == 1) return;
    EXPECT_GT(done.record.gpu.graphs, 3);
    EXPECT_EQ(done.record.gpu.reduction, "nccl between the graphs");
}

TEST(gpu_training, call_by_call) {
    auto options = small_mnist(45);
    options.gpu.graph = graph_use::off;
    options.published_protocol = true;
    EXPECT_EQ(expect_same(options).record.gpu.graphs, 0);
}

TEST(gpu_training, the_published_cifar_network) {
    training_options options;
    options.net = "cifar10";
    options.generated_train = static_cast<std::size_t>(4 * ranks().size());
    options.generated_test = 2;
    options.batch = 2;
    options.rate = 0.05;
    options.bucket_bytes = 1 << 20;
    auto const done = expect_same(options);
    EXPECT_EQ(done.weights.size(), 23'272'266u);
    EXPECT_EQ(done.record.gpu.graphs, 1);
}

TEST(gpu_training, what_cannot_be_captured_is_told) {
    auto options = small_mnist(45);
    options.on_gpu = true;
    fake_set("no_capture", 1);
    struct again {
        ~again() { fake_set("no_capture", 0); }
    } const at_end;
    try {
        train(options, *make_gpu_trainer(options, ranks()));
        ADD_FAILURE() << "nothing was thrown";
    } catch (error const& problem) {
        EXPECT_THAT(problem.what(), testing::HasSubstr("--graph off"));
    }
}

int run(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    environment const variables = environment::capture();
    auto const who = identify(variables);
    init_log("warning", who.host, who.rank);
    if (auto const why = gpu_training_lacks(); !why.empty()) {
        std::printf("SKIPPED: %s\n", why.c_str());
        return 77;
    }
    comm_options options;
    options.deadline = duration{60};
    all_ranks.emplace(communicator::create(who, options));
    int failed = RUN_ALL_TESTS() != 0;
    all_ranks->allreduce("failures", view_of(std::span(&failed, 1)), reduction::max).wait();
    all_ranks.reset();
    return failed;
}

}  // namespace

}  // namespace muster::test

int main(int argc, char** argv) {
    return muster::test::run(argc, argv);
}
