#include "bench/training/training_split.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.hpp"
#include "bench/network/published/cifar_network.hpp"
#include "bench/network/published/mnist_network.hpp"

namespace muster {
namespace {

constexpr image_input tiny{2, 8, 8, 0.5f, 0.5f, 10};

identity rank_of(int rank, int world) {
    identity who;
    who.rank = rank;
    who.world_size = world;
    return who;
}

split_request generated(int batch, std::size_t images, bool shuffle = true) {
    return {"", "train", batch, 42, shuffle, images};
}

TEST(training_split, over_all_ranks_an_epoch_has_every_image_once) {
    for (int const world : {1, 2, 3}) {
        std::map<std::uint64_t, int> met;
        std::size_t steps = 0;
        for (int r = 0; r < world; ++r) {
            auto const split = open_training_split(generated(4, 29), tiny, rank_of(r, world));
            std::size_t const begun = split->begin(1);
            std::size_t done = 0, images = 0;
            while (auto const* part = split->next()) {
                images += part->global_count;
                EXPECT_EQ(part->images.size(), part->count * 128);
                for (auto const sample : part->samples) ++met[sample];
                ++done;
            }
            EXPECT_EQ(images, 29u) << "the steps' images are those of all ranks";
            EXPECT_EQ(done, begun);
            EXPECT_TRUE(r == 0 || done == steps) << "ranks meet in every step";
            steps = done;
        }
        EXPECT_EQ(met.size(), 29u);
        for (auto const& [sample, times] : met) EXPECT_EQ(times, 1) << sample;
    }
}

TEST(training_split, images_keep_their_labels_in_any_order) {
    auto const ordered = open_training_split(generated(50, 50, false), tiny, rank_of(0, 1));
    auto const shuffled = open_training_split(generated(50, 50), tiny, rank_of(0, 1));
    ordered->begin(0);
    shuffled->begin(3);
    auto const *a = ordered->next(), *b = shuffled->next();
    EXPECT_FALSE(std::equal(a->samples.begin(), a->samples.end(), b->samples.begin()));
    for (std::size_t i = 0; i < 50; ++i) {
        auto const sample = b->samples[i];
        EXPECT_EQ(b->labels[i], a->labels[sample]);
        EXPECT_TRUE(std::equal(b->images.begin() + static_cast<long>(i) * 128, b->images.begin() + static_cast<long>(i + 1) * 128,
                               a->images.begin() + static_cast<long>(sample) * 128));
    }
}

TEST(training_split, test_images_are_others) {
    auto request = generated(8, 8, false);
    auto const train = open_training_split(request, tiny, rank_of(0, 1));
    request.split = "test";
    auto const test = open_training_split(request, tiny, rank_of(0, 1));
    train->begin(0);
    test->begin(0);
    auto const *a = train->next(), *b = test->next();
    EXPECT_FALSE(std::equal(a->images.begin(), a->images.end(), b->images.begin()));
    EXPECT_NE(train->source().find("generated"), std::string::npos);
}

class cifar_folder : public testing::Test {
  protected:
    void SetUp() override {
        std::filesystem::create_directory(folder_);
        for (int i = 1; i <= 5; ++i) write("data_batch_" + std::to_string(i) + ".bin", i, 3);
        write("test_batch.bin", 9, 2);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    void write(std::string const& name, int label, int count) {
        std::ofstream file(folder_ / name, std::ios::binary);
        for (int i = 0; i < count; ++i) file << static_cast<char>(label) << std::string(3072, static_cast<char>(10 * label + i));
    }
    split_request request(std::string const& split) const { return {folder_.string(), split, 4, 42, false, 0}; }
    std::filesystem::path folder_ = std::filesystem::temp_directory_path() / ("muster-cifar-" + std::to_string(::getpid()));
};

TEST_F(cifar_folder, is_read_as_its_binary_files_stand) {
    auto const train = open_training_split(request("train"), cifar_network::images, rank_of(0, 1));
    EXPECT_EQ(train->size(), 15u);
    train->begin(0);
    auto const* part = train->next();
    ASSERT_EQ(part->count, 4u);
    EXPECT_THAT(part->labels, testing::ElementsAre(1, 1, 1, 2));
    EXPECT_EQ(part->images[0], 10);
    EXPECT_EQ(part->images[3 * 3072], 20);
    auto const test = open_training_split(request("test"), cifar_network::images, rank_of(0, 1));
    EXPECT_EQ(test->size(), 2u);
}

TEST_F(cifar_folder, a_label_that_is_no_class_is_told_with_its_file) {
    write("data_batch_5.bin", 77, 3);
    try {
        open_training_split(request("train"), cifar_network::images, rank_of(0, 1));
        FAIL();
    } catch (error const& e) {
        EXPECT_NE(std::string(e.what()).find("data_batch_5.bin"), std::string::npos) << e.what();
        EXPECT_NE(std::string(e.what()).find("77"), std::string::npos) << e.what();
    }
}

TEST_F(cifar_folder, is_not_for_the_mnist_network) {
    EXPECT_THROW(open_training_split(request("train"), mnist_network::images, rank_of(0, 1)), error);
}

}  // namespace
}  // namespace muster
