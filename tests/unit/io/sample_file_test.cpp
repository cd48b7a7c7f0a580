#include "io/dataset/sample_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.hpp"
#include "io/convert/convert.hpp"
#include "test_files.hpp"

// Tests of reading samples without HDF5: the same bytes from every layout and thread, and damage is named with its chunk.
namespace muster {
namespace {

using testing::HasSubstr;

constexpr std::size_t samples = 1003;

struct stored_as {
    std::size_t chunk;
    unsigned gzip_level;
};

class sample_file_of : public testing::TestWithParam<stored_as> {
  protected:
    sample_file_of() {
        convert_request request;
        request.writer.durable = false;
        request.splits = {{"train", dir.write("i", test::idx_images(samples, 5, 7)), dir.write("l", test::idx_labels(samples))}};
        request.output = dir.path("data.h5");
        request.chunk_samples = GetParam().chunk;
        request.gzip_level = GetParam().gzip_level;
        convert(request);
    }
    test::scratch dir;
};

TEST_P(sample_file_of, reads_what_hdf5_reads) {
    dataset const from = dataset::open(dir.path("data.h5"));
    ASSERT_TRUE(from.info().read_by_chunks);
    test::bytes expected(samples * 35);
    from.read(0, samples, expected, {});
    sample_file const file(from);
    ASSERT_EQ(file.sample_bytes(), 35u);
    for (hyperslab const rows : {hyperslab{0, samples}, hyperslab{100, 100}, hyperslab{99, 2}, hyperslab{1002, 1},
                                 hyperslab{350, 653}, hyperslab{7, 0}}) {
        test::bytes found(rows.count * 35);
        file.will_need(rows);
        file.read(rows, found.data());
        EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin() + static_cast<std::ptrdiff_t>(rows.first * 35)))
            << rows.first;
    }
    EXPECT_LT(file.place_in_page(500, 4096), 4096u);
}

TEST_P(sample_file_of, threads_read_beside_each_other) {
    dataset const from = dataset::open(dir.path("data.h5"));
    test::bytes expected(samples * 35), found(samples * 35);
    from.read(0, samples, expected, {});
    sample_file const file(from);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (std::size_t row = t * 10; row < samples; row += 40)
                file.read({row, std::min<std::size_t>(10, samples - row)}, found.data() + row * 35);
        });
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(found, expected);
}

TEST_P(sample_file_of, a_file_that_is_cut_is_told) {
    dataset const from = dataset::open(dir.path("data.h5"));
    sample_file const file(from);
    std::filesystem::resize_file(dir.path("data.h5"), 3000);
    test::bytes found(samples * 35);
    try {
        file.read({0, samples}, found.data());
        FAIL() << "all of a file that is not there";
    } catch (error const& problem) {
        EXPECT_EQ(problem.code(), errc::invalid_data);
        EXPECT_THAT(problem.what(), HasSubstr("data.h5: ends at"));
    }
    EXPECT_THROW(sample_file{from}, error);
}

INSTANTIATE_TEST_SUITE_P(layouts, sample_file_of, testing::Values(stored_as{0, 0}, stored_as{100, 0}, stored_as{100, 6}));

TEST(sample_file, a_damaged_chunk_is_named) {
    test::scratch dir;
    convert_request request;
    request.writer.durable = false;
    request.splits = {{"train", dir.write("i", test::idx_images(samples, 5, 7)), dir.write("l", test::idx_labels(samples))}};
    request.output = dir.path("data.h5");
    request.chunk_samples = 100;
    request.gzip_level = 6;
    convert(request);
    dataset const from = dataset::open(dir.path("data.h5"));
    auto const chunk = from.stored_chunks().at(3);
    ASSERT_TRUE(chunk.encoded);
    {
        std::fstream file(dir.path("data.h5"), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(chunk.offset));
        file.write("\xff\xff\xff\xff", 4);
    }
    sample_file const file(from);
    test::bytes found(100 * 35);
    file.read({200, 100}, found.data());
    try {
        file.read({350, 20}, found.data());
        FAIL() << "nobody noticed";
    } catch (error const& problem) {
        EXPECT_EQ(problem.code(), errc::invalid_data);
        EXPECT_THAT(problem.what(), HasSubstr("data.h5: chunk 3 (samples 300 to 399, "));
    }
}

}  // namespace
}  // namespace muster
