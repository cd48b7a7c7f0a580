// ranks: 1 2 4
// One copy of a dataset a node, which its ranks share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "io/dataset/dataset_writer.hpp"
#include "io/loader/loader.hpp"
#include "io/loader/mapped_memory.hpp"
#include "mpi_test.hpp"

namespace muster {
namespace {

using test::ranks;

/// The mappings and the open files of this process that are a node's copy.
std::vector<std::string> copies() {
    std::vector<std::string> found;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find("memfd:muster-node-copy") != std::string::npos) found.push_back(line.substr(line.find(' ') + 1, 4));
    for (auto const& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        if (std::filesystem::read_symlink(entry.path(), gone).string().find("muster-node-copy") != std::string::npos)
            found.push_back("open");
    }
    return found;
}

TEST(node_copy, one_rank_of_a_node_fills_it_and_all_read_it) {
    constexpr std::size_t bytes = 3'000'001;
    {
        bool filled = false;
        mapped_memory const memory = share_on_node(ranks(), bytes, false, [&](std::span<std::uint8_t> into) {
            filled = !into.empty();
            for (std::size_t i = 0; i < into.size(); ++i) into[i] = static_cast<std::uint8_t>(i * 7 >> 3);
        });
        EXPECT_EQ(filled, ranks().who().local_rank == 0);
        ASSERT_EQ(memory.bytes().size(), bytes);
        for (std::size_t i = 0; i < bytes; i += 97) ASSERT_EQ(memory.bytes()[i], static_cast<std::uint8_t>(i * 7 >> 3));
        EXPECT_EQ(copies(), std::vector<std::string>{"r--s"}) << "read only, and no file that could be inherited";
    }
    EXPECT_TRUE(copies().empty());
}

TEST(node_copy, what_fails_on_the_rank_that_reads_fails_on_all) {
    EXPECT_THROW(share_on_node(ranks(), 100, false,
                               [](std::span<std::uint8_t> into) {
                                   if (!into.empty()) throw error(errc::io, "the disk is broken");
                               }),
                 error);
    ranks().barrier().wait();
    EXPECT_TRUE(copies().empty());
    // More than any machine has.
    EXPECT_THROW(share_on_node(ranks(), std::size_t{1} << 60, false, [](std::span<std::uint8_t>) {}), error);
    ranks().barrier().wait();
}

TEST(shared_loader, delivers_what_one_with_its_own_memory_delivers) {
    std::string const path =
        (std::filesystem::temp_directory_path() / ("muster-node-copy-" + ranks().who().nspace + ".h5")).string();
    constexpr std::size_t samples = 1001, bytes = 12;
    if (ranks().rank() == 0) {
        split_plan plan;
        plan.split = "train";
        plan.samples = samples;
        plan.shape = {1, 3, 4};
        plan.classes = 10;
        dataset_writer writer(path, {plan}, {.name = "made up", .replace = true, .durable = false});
        std::vector<std::uint8_t> images(samples * bytes), labels(samples);
        for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<std::uint8_t>(i * 2654435761u >> 13);
        for (std::size_t i = 0; i < samples; ++i) labels[i] = static_cast<std::uint8_t>(i % 10);
        writer.write(0, {0, samples}, images, labels);
        writer.close();
    }
    ranks().barrier().wait();
    dataset const from = dataset::open(path);
    for (spread_rule const spread : {spread_rule::global, spread_rule::by_node}) {
        sampler const by(samples, {.seed = 5, .spread = spread});
        loader shared(from, by, ranks(), {.batch = 50, .memory = memory_mode::shared});
        loader_options own = shared.options();
        own.memory = memory_mode::whole;
        EXPECT_EQ(own.world, ranks().size());
        loader whole(from, by, own);
        auto expected = whole.epoch(3);
        auto at = expected.begin();
        for (batch const& b : shared.epoch(3)) {
            ASSERT_NE(at, expected.end());
            ASSERT_TRUE(std::equal(b.images.begin(), b.images.end(), at->images.begin(), at->images.end()));
            ASSERT_TRUE(std::equal(b.labels.begin(), b.labels.end(), at->labels.begin(), at->labels.end()));
            ++at;
        }
        loader automatic(from, by, ranks());
        EXPECT_EQ(automatic.options().memory, ranks().size() > 1 ? memory_mode::shared : memory_mode::whole);
    }
    EXPECT_THROW(loader(from, sampler(samples, {.spread = spread_rule::sharded}), ranks(), {.memory = memory_mode::shared}),
                 error);
    ranks().barrier().wait();
    if (ranks().rank() == 0) std::filesystem::remove(path);
}

}  // namespace
}  // namespace muster
