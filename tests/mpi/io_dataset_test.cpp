// ranks: 1 2 4
// Datasets created and read by several ranks together. A file made by all ranks holds the same as one made by a single process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "io/arrays/item_array.hpp"
#include "io/convert/convert.hpp"
#include "io/dataset/dataset.hpp"
#include "io/loader/loader.hpp"
#include "mpi_test.hpp"

namespace muster {
namespace {

using test::ranks;
using testing::HasSubstr;
using bytes = std::vector<std::uint8_t>;

std::uint8_t pixel(std::size_t i) {
    return static_cast<std::uint8_t>((i * 2654435761u) >> 13);
}
std::uint8_t label(std::size_t i) {
    return static_cast<std::uint8_t>(i * 7 % 10);
}

bytes idx(std::vector<std::uint32_t> const& dimensions, std::uint8_t (*value)(std::size_t)) {
    bytes out{0, 0, 8, static_cast<std::uint8_t>(dimensions.size())};
    std::size_t count = 1;
    for (std::uint32_t const dimension : dimensions) {
        for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(dimension >> shift));
        count *= dimension;
    }
    for (std::size_t i = 0; i < count; ++i) out.push_back(value(i));
    return out;
}

void save(std::string const& path, bytes const& contents) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<char const*>(contents.data()), static_cast<std::streamsize>(contents.size()));
}

void meet() {
    ranks().barrier().wait();
}

/// A folder that rank 0 makes, fills and removes, and all use.
class io_dataset : public testing::Test {
  protected:
    void SetUp() override {
        bytes name(256, 0);
        if (ranks().rank() == 0) {
            std::string pattern = (std::filesystem::temp_directory_path() / "muster-io-mpi.XXXXXX").string();
            ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
            std::copy(pattern.begin(), pattern.end(), name.begin());
        }
        ranks().broadcast("folder", view_of(std::span(name)), 0).wait();
        folder_ = reinterpret_cast<char const*>(name.data());
    }
    void TearDown() override {
        meet();
        std::error_code ignored;
        if (ranks().rank() == 0) std::filesystem::remove_all(folder_, ignored);
    }
    std::string path(std::string const& name) const { return folder_ + "/" + name; }

    /// Images of 64 x 64: 256 in a block of checksums.
    convert_request request(std::uint32_t samples, std::string const& output) {
        if (ranks().rank() == 0) {
            save(path("images"), idx({samples, 64, 64}, pixel));
            save(path("labels"), idx({samples}, label));
        }
        meet();
        convert_request all;
        all.splits = {{"train", path("images"), path("labels")}};
        all.output = path(output);
        all.writer.durable = false;
        return all;
    }
    /// Opened by this rank alone.
    static void expect_equal_files(std::string const& one, std::string const& other) {
        dataset const a = dataset::open(one);
        dataset const b = dataset::open(other);
        dataset_info left = a.info();
        dataset_info right = b.info();
        left.path = right.path;
        left.image_offset = right.image_offset;  // may differ: the metadata between may lie elsewhere
        EXPECT_EQ(left, right);
        bytes images[2]{bytes(a.size() * a.image_bytes()), bytes(b.size() * b.image_bytes())};
        bytes labels[2]{bytes(a.size()), bytes(b.size())};
        a.read(0, a.size(), images[0], labels[0]);
        b.read(0, b.size(), images[1], labels[1]);
        EXPECT_TRUE(images[0] == images[1]);
        EXPECT_TRUE(labels[0] == labels[1]);
        EXPECT_NO_THROW(a.verify());
        EXPECT_NO_THROW(b.verify());
    }
    template <typename Call>
    static std::string message_on_every_rank(Call&& call) {
        try {
            call();
        } catch (error const& e) {
            return e.what();
        }
        ADD_FAILURE() << "rank " << ranks().rank() << " did not throw";
        return "";
    }

    std::string folder_;
};

TEST_F(io_dataset, all_ranks_create_what_one_process_creates) {
    // Fewer blocks than ranks, a short last block, several pieces of 8 MiB a rank.
    for (std::uint32_t const samples : {1u, 255u, 700u, 9000u})
        for (std::size_t const chunk : {std::size_t{0}, std::size_t{100}}) {
            if (chunk != 0 && samples > 1000) continue;
            convert_request together = request(samples, "together.h5");
            together.chunk_samples = chunk;
            convert(together, ranks());
            if (ranks().rank() == 0) {
                convert_request alone = together;
                alone.output = path("alone.h5");
                convert(alone);
                expect_equal_files(path("together.h5"), path("alone.h5"));
                for (char const* name : {"together.h5", "alone.h5"}) std::filesystem::remove(path(name));
            }
            meet();
        }
}

TEST_F(io_dataset, each_rank_reads_its_shard_together) {
    convert(request(1003, "data.h5"), ranks());
    dataset const data = dataset::open(path("data.h5"), ranks());
    hyperslab const mine = shard_of(data.size(), ranks().rank(), ranks().size());
    bytes images(mine.count * data.image_bytes());
    bytes labels(mine.count);
    data.read(mine, images, labels);
    for (std::size_t i = 0; i < images.size(); ++i) ASSERT_EQ(images[i], pixel(mine.first * data.image_bytes() + i));
    for (std::size_t i = 0; i < mine.count; ++i) ASSERT_EQ(labels[i], label(mine.first + i));
    data.verify();
}

TEST_F(io_dataset, ranks_without_samples_take_part) {
    convert(request(3, "three.h5"), ranks());
    dataset const data = dataset::open(path("three.h5"), ranks());
    hyperslab const mine = shard_of(data.size(), ranks().rank(), ranks().size());
    EXPECT_EQ(mine.empty(), ranks().rank() >= 3);
    bytes images(mine.count * data.image_bytes());
    bytes labels(mine.count);
    data.read(mine, images, labels);
    for (std::size_t i = 0; i < mine.count; ++i) ASSERT_EQ(labels[i], label(mine.first + i));
    // Only the last rank reads anything, and only labels.
    bool const last = ranks().rank() == ranks().size() - 1;
    bytes few(last ? 2 : 0);
    data.read(1, few.size(), {}, few);
    if (last) {
        EXPECT_EQ(few, (bytes{label(1), label(2)}));
    }
}

TEST_F(io_dataset, the_loaders_of_all_ranks_cover_every_sample_once) {
    convert(request(1003, "data.h5"), ranks());
    dataset const data = dataset::open(path("data.h5"), ranks());
    for (auto const spread : {spread_rule::global, spread_rule::sharded}) {
        sampler const order(data.size(), {.seed = 3, .spread = spread});
        loader from(data, order, {.batch = 50, .rank = ranks().rank(), .world = ranks().size()});
        std::vector<std::int32_t> times(data.size(), 0);
        for (batch const& given : from.epoch(2)) {
            std::vector<std::int32_t> in_step{static_cast<std::int32_t>(given.count)};
            ranks().allreduce("step", view_of(std::span(in_step)), reduction::sum).wait();  // hangs if steps differ
            EXPECT_EQ(in_step[0], static_cast<std::int32_t>(given.global_count));
            for (std::size_t i = 0; i < given.count; ++i) {
                ++times[given.samples[i]];
                ASSERT_EQ(given.labels[i], label(given.samples[i]));
                ASSERT_EQ(given.images[i * data.image_bytes()], pixel(given.samples[i] * data.image_bytes()));
            }
        }
        ranks().allreduce("times", view_of(std::span(times)), reduction::sum).wait();
        EXPECT_EQ(std::count(times.begin(), times.end(), 1), static_cast<std::ptrdiff_t>(times.size()));
    }
}

TEST_F(io_dataset, a_failure_on_one_rank_is_told_on_all) {
    convert(request(1003, "data.h5"), ranks());
    int const last = ranks().size() - 1;
    std::string const mine = path(ranks().rank() == last ? "missing.h5" : "data.h5");
    std::string const message = message_on_every_rank([&] { dataset::open(mine, ranks()); });
    EXPECT_THAT(message, HasSubstr("missing.h5: No such file"));
    if (ranks().size() > 1) {
        EXPECT_THAT(message, HasSubstr("rank " + std::to_string(last) + " ("));
    }

    // A wrong argument on one rank of a collective read; the others are not left waiting.
    dataset const data = dataset::open(path("data.h5"), ranks());
    bytes labels(10);
    std::size_t const first = ranks().rank() == last ? 1000 : 0;
    EXPECT_THAT(message_on_every_rank([&] { data.read(first, 10, {}, labels); }),
                HasSubstr("samples 1000 to 1010: /train has 1003"));
    EXPECT_NO_THROW(data.read(0, 10, {}, labels)) << "and it still works";
}

TEST_F(io_dataset, a_damaged_sample_is_told_on_all_ranks) {
    convert(request(5000, "data.h5"), ranks());
    std::uint64_t const offset = *dataset::open(path("data.h5")).info().image_offset;
    meet();
    if (ranks().rank() == 0) {
        std::fstream file(path("data.h5"), std::ios::binary | std::ios::in | std::ios::out);
        file.seekp(static_cast<std::streamoff>(offset + 4999 * 4096));
        file.put(static_cast<char>(pixel(4999 * 4096) ^ 1));
    }
    meet();
    dataset const data = dataset::open(path("data.h5"), ranks());
    EXPECT_THAT(message_on_every_rank([&] { data.verify(); }),
                HasSubstr("/train/images: samples 4864 to 4999 (block 19, bytes "));
}

TEST_F(io_dataset, a_failed_conversion_leaves_no_file) {
    convert_request bad = request(5000, "bad.h5");
    bad.classes = 9;  // the first 9 is label 7, which rank 0 meets; every other rank goes on until it is told
    EXPECT_THAT(message_on_every_rank([&] { convert(bad, ranks()); }),
                HasSubstr("offset 15: label: found 9 for item 7, expected below 9"));
    meet();
    EXPECT_FALSE(std::filesystem::exists(path("bad.h5")));
    EXPECT_FALSE(std::filesystem::exists(path("bad.h5.partial")));

    // One rank is given a file that is not there.
    bad.classes = 10;
    if (ranks().rank() == ranks().size() - 1) bad.splits[0].labels = path("nowhere");
    EXPECT_THAT(message_on_every_rank([&] { convert(bad, ranks()); }), HasSubstr("nowhere: No such file"));
    meet();
    EXPECT_FALSE(std::filesystem::exists(path("bad.h5")));
}

TEST_F(io_dataset, ranks_that_see_different_files_are_told_so) {
    if (ranks().size() == 1) GTEST_SKIP() << "needs two ranks";
    convert_request all = request(100, "mixed.h5");
    if (ranks().rank() == 1) {
        save(path("stale images"), idx({90, 64, 64}, pixel));
        save(path("stale labels"), idx({90}, label));
        all.splits[0].images = path("stale images");
        all.splits[0].labels = path("stale labels");
    }
    EXPECT_THAT(message_on_every_rank([&] { convert(all, ranks()); }),
                HasSubstr("the ranks see different files: 90 samples and 100 samples"));
}

TEST_F(io_dataset, a_transfer_that_was_not_collective_is_refused) {
    if (ranks().native() == nullptr) GTEST_SKIP() << "no MPI-IO without MPI";
    convert(request(300, "data.h5"), ranks());
    hdf5::place const where{path("data.h5"), "/train"};
    hdf5::file const file = hdf5::open_file(where, hdf5::file_access(where, 1, ranks().native()));
    hdf5::group const group = hdf5::open_group({where.file, "/"}, file, "train");
    hdf5::dataset const labels = hdf5::open_dataset(where, group, "labels");
    bytes some(10);
    hdf5::property_list const together = hdf5::transfer(where, true);
    hdf5::read(where, labels, {0, 10}, element_type::u8, some.data(), together);
    EXPECT_NO_THROW(hdf5::require_collective(where, together));
    hdf5::property_list const apart = hdf5::transfer(where, false);
    hdf5::read(where, labels, {0, 10}, element_type::u8, some.data(), apart);
    EXPECT_THROW(hdf5::require_collective(where, apart), hdf5_error);
}

}  // namespace
}  // namespace muster
