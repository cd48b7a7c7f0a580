// Training on several ranks: gradients that belong to the whole step's images, weights that stay equal, results that repeat.
// ranks: 1 2 3
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "base/error.hpp"
#include "bench/network/choose_kernels.hpp"
#include "bench/network/published/mnist_network.hpp"
#include "bench/training/training.hpp"
#include "comm/gradients/gradient_reducer.hpp"
#include "io/dataset/dataset_writer.hpp"
#include "mpi_test.hpp"

namespace muster::test {
namespace {

struct images {
    std::vector<std::uint8_t> pixels, labels;
    images(int count, std::uint64_t seed) {
        random_stream const stream(seed, 100);
        std::uint64_t draw = 0;
        for (int n = 0; n < count; ++n) {
            auto const label = static_cast<std::uint8_t>(stream.bits(draw++) % 10);
            labels.push_back(label);
            // A bar whose place is the label's, on noise: something that can be learnt.
            for (int i = 0; i < 784; ++i)
                pixels.push_back(static_cast<std::uint8_t>(i / 28 / 2 == label ? 200 : stream.bits(draw++) % 64));
        }
    }
    std::span<std::uint8_t const> pixels_of(int first, int count) const {
        return std::span(pixels).subspan(static_cast<std::size_t>(first) * 784, static_cast<std::size_t>(count) * 784);
    }
    std::span<std::uint8_t const> labels_of(int first, int count) const {
        return std::span(labels).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    }
};

std::unique_ptr<gradient_reducer> reducer_for(mnist_network& net, std::size_t bucket_bytes) {
    std::vector<gradient_view> gradients;
    for (std::size_t i = 0; i < net.table().size(); ++i) gradients.push_back({net.table()[i].shape.name, net.gradient(i)});
    return std::make_unique<gradient_reducer>(ranks(), gradients, gradient_reducer_options{bucket_bytes, bucket_bytes});
}

// `total` images cut into pieces, one a rank, as even as possible or all on the last rank; the average must be what one rank
// computes from all.
void expect_same_gradient(int total, bool all_on_last, std::size_t bucket_bytes) {
    int const world = ranks().size(), rank = ranks().rank();
    images const all(total, 3);
    mnist_network whole(total, choose_kernels(), 0), part(total, choose_kernels(), 0);
    for (auto* net : {&whole, &part}) net->initialise(42);
    whole.load(all.pixels, total);
    whole.forward(true);
    whole.backward(all.labels);

    std::fill(part.gradients().begin(), part.gradients().end(), 7.0f);  // nothing of an earlier step may stay
    auto const reducer = reducer_for(part, bucket_bytes);
    auto const ready = [&](std::size_t i) { reducer->ready(i); };
    int const first = all_on_last ? 0 : total * rank / world, last = all_on_last ? total : total * (rank + 1) / world;
    if (all_on_last ? rank == world - 1 : last > first) {
        part.load(all.pixels_of(first, last - first), last - first);
        part.forward(true);
        part.backward(all.labels_of(first, last - first), ready, static_cast<float>(world) / static_cast<float>(total));
    } else {
        part.no_images(ready);
    }
    reducer->finish();
    double largest = 0;
    for (float g : whole.gradients()) largest = std::max(largest, std::abs(double{g}));
    ASSERT_GT(largest, 0);
    for (std::size_t i = 0; i < part.gradients().size(); ++i)
        ASSERT_NEAR(part.gradients()[i], whole.gradients()[i], 1e-5 * largest) << "gradient " << i;
}

TEST(bench_training, halves_of_a_batch_average_to_the_gradient_of_the_whole) {
    expect_same_gradient(64, false, 64 << 10);
}
TEST(bench_training, pieces_of_unequal_size_too) {
    expect_same_gradient(7, false, 1);
}
TEST(bench_training, a_rank_without_images_changes_nothing) {
    expect_same_gradient(5, true, 1 << 20);
}

// One file for all ranks, written by rank 0.
class with_data : public testing::Test {
  protected:
    void SetUp() override {
        std::int64_t id = ::getpid();
        ranks().broadcast("id", view_of(std::span(&id, 1)), 0).wait();
        path_ = (std::filesystem::temp_directory_path() / ("muster-bench-training-" + std::to_string(id) + ".h5")).string();
        if (ranks().rank() == 0) {
            // One more than whole steps of 16 a rank: in the last step only one rank has an image.
            dataset_writer writer(path_, {plan("train", 289), plan("test", 101)}, {.replace = true, .durable = false});
            add(writer, 0, 289, 1);
            add(writer, 1, 101, 2);
            writer.close();
        }
        ranks().barrier().wait();
    }
    void TearDown() override {
        ranks().barrier().wait();
        if (ranks().rank() == 0) std::filesystem::remove(path_);
    }
    static split_plan plan(std::string const& split, std::size_t count) {
        split_plan made;
        made.split = split;
        made.samples = count;
        made.shape = {1, 28, 28};
        made.classes = 10;
        return made;
    }
    static void add(dataset_writer& writer, std::size_t split, int count, std::uint64_t seed) {
        images const some(count, seed);
        writer.write(split, {0, static_cast<std::size_t>(count)}, some.pixels, some.labels);
    }
    training_options options() const {
        training_options o;
        o.data = path_;
        o.epochs = 2;
        o.batch = 16;
        return o;
    }
    train_record train(training_options const& o) {
        return run_training(o, ranks(), choose_kernels(), std::chrono::steady_clock::now());
    }
    std::string path_;
};

TEST_F(with_data, repeats_bit_for_bit_and_counts_every_image_once) {
    auto const a = train(options()), b = train(options());
    EXPECT_EQ(a.weights_checksum, b.weights_checksum);
    ASSERT_EQ(a.epochs_done.size(), 2u);
    for (auto const& e : a.epochs_done) {
        EXPECT_EQ(e.images, 289);
        EXPECT_EQ(e.test_images, 101);
        EXPECT_EQ(e.steps, (289 + 16 * ranks().size() - 1) / (16 * ranks().size()));
        EXPECT_GT(e.train_s, 0);
        EXPECT_GE(e.train_s + 1e-9, e.steady_s);
    }
    EXPECT_EQ(a.epochs_done[1].correct, b.epochs_done[1].correct);
    EXPECT_LT(a.epochs_done[1].train_loss, a.epochs_done[0].train_loss);
    EXPECT_EQ(a.world_size, ranks().size());
    EXPECT_EQ(a.ranks.size(), static_cast<std::size_t>(ranks().size()));
    EXPECT_FALSE(a.ranks.back().cores.empty());

    auto other_seed = options();
    other_seed.seed = 43;
    EXPECT_NE(train(other_seed).weights_checksum, a.weights_checksum);
}

// Ranks together compute what one would with their batches joined: the same images in each step, each image with the same weight.
TEST_F(with_data, ranks_together_equal_one_with_a_larger_batch) {
    auto together = options();
    together.dropout = 0;
    auto const a = train(together);
    auto joined = together;
    joined.batch *= ranks().size();
    joined.rate *= ranks().size();
    comm_options self;
    self.backend = "self";
    auto single = communicator::create(identity{}, self);
    auto const b = run_training(joined, single, choose_kernels(), std::chrono::steady_clock::now());
    for (std::size_t e = 0; e < 2; ++e) {
        EXPECT_NEAR(a.epochs_done[e].train_loss, b.epochs_done[e].train_loss, 2e-5 * b.epochs_done[e].train_loss);
        EXPECT_NEAR(a.epochs_done[e].test_loss, b.epochs_done[e].test_loss, 2e-5 * b.epochs_done[e].test_loss);
        EXPECT_EQ(a.epochs_done[e].steps, b.epochs_done[e].steps);
    }
}

TEST_F(with_data, the_published_protocol_and_other_buckets_compute_the_same) {
    auto const a = train(options());
    auto changed = options();
    changed.published_protocol = true;
    EXPECT_EQ(train(changed).weights_checksum, a.weights_checksum);
    // Other pieces may be summed in another order from three ranks on.
    if (ranks().size() < 3) {
        changed.bucket_bytes = 1;
        EXPECT_EQ(train(changed).weights_checksum, a.weights_checksum);
    }
}

TEST_F(with_data, data_that_is_missing_or_unfit_fails_on_all_ranks) {
    auto missing = options();
    missing.data = path_ + ".none";
    EXPECT_THROW(train(missing), error);
    // On one rank alone: the others must hear of it.
    if (ranks().rank() != ranks().size() - 1) missing.data = path_;
    EXPECT_THROW(train(missing), error);
}

TEST_F(with_data, training_that_diverges_is_an_error) {
    auto wild = options();
    wild.rate = 1e38;
    try {
        train(wild);
        FAIL();
    } catch (error const& e) {
        EXPECT_EQ(e.code(), errc::invalid_data);
        EXPECT_NE(std::string(e.what()).find("lower --lr"), std::string::npos) << e.what();
    }
}

// Another seed on the last rank draws other dropout masks and other images, but the reducer keeps weights equal; other initial
// weights are overwritten by rank 0's.
TEST_F(with_data, ranks_start_from_the_weights_of_rank_0) {
    auto mixed = options();
    mixed.seed = ranks().rank() == 0 ? 42 : 77;
    EXPECT_FALSE(train(mixed).weights_checksum.empty());
}

}  // namespace
}  // namespace muster::test
