#include "io/arrays/item_array.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "test_files.hpp"

namespace muster {
namespace {

using namespace test;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// Reads all of it, as the converter does.
bytes read_all(std::string const& path, idx_kind kind) {
    idx_reader reader(path, kind);
    bytes all(reader.items() * reader.item_bytes());
    reader.read(all);
    reader.finish();
    return all;
}

struct expected_fault {
    std::uint64_t offset;
    std::string field;
    std::string found;
    std::string expected;
};

void expect_fault(std::string const& path, idx_kind kind, expected_fault const& wanted) {
    try {
        read_all(path, kind);
        ADD_FAILURE() << path << " was read; expected a fault in " << wanted.field;
    } catch (source_error const& e) {
        EXPECT_EQ(e.file(), path);
        EXPECT_EQ(e.offset(), wanted.offset) << e.what();
        EXPECT_EQ(e.field(), wanted.field) << e.what();
        EXPECT_EQ(e.found(), wanted.found) << e.what();
        EXPECT_EQ(e.expected(), wanted.expected) << e.what();
        EXPECT_EQ(e.code(), errc::invalid_data);
        EXPECT_THAT(e.what(), StartsWith(path));
        EXPECT_THAT(e.what(),
                    HasSubstr("offset " + std::to_string(wanted.offset) + ": " + wanted.field + ": found " + wanted.found));
        EXPECT_THAT(e.what(), HasSubstr("; ")) << "one thing to do";
    }
}

class idx : public testing::Test {
  protected:
    scratch dir;
};

TEST_F(idx, images_and_labels_are_read) {
    bytes const images = idx_images(5, 4, 3);
    std::string const path = dir.write("images", images);
    idx_reader reader(path, idx_kind::images);
    EXPECT_EQ(reader.items(), 5u);
    EXPECT_EQ(reader.form().dimensions, (std::vector<std::uint64_t>{5, 4, 3}));
    EXPECT_EQ(reader.offset_of(2), 16u + 24u);
    EXPECT_EQ(read_all(path, idx_kind::images), bytes(images.begin() + 16, images.end()));
    bytes const labels = idx_labels(7);
    EXPECT_EQ(read_all(dir.write("labels", labels), idx_kind::labels), bytes(labels.begin() + 8, labels.end()));
}

TEST_F(idx, four_dimensions_are_channels_rows_columns) {
    bytes file = idx_header(8, {2, 3, 4, 5});
    for (std::size_t i = 0; i < 120; ++i) file.push_back(pixel(i));
    EXPECT_EQ(idx_reader(dir.write("rgb", file), idx_kind::images).form().dimensions, (std::vector<std::uint64_t>{2, 3, 4, 5}));
}

TEST_F(idx, gzip_is_seen_from_the_contents_not_from_the_name) {
    bytes const plain = idx_images(50, 6, 5);
    bytes const data(plain.begin() + 16, plain.end());
    EXPECT_EQ(read_all(dir.write("compressed.gz", gzip(plain)), idx_kind::images), data);
    EXPECT_EQ(read_all(dir.write("compressed-named-as-plain", gzip(plain)), idx_kind::images), data);
    EXPECT_EQ(read_all(dir.write("plain-named.gz", plain), idx_kind::images), data);
    EXPECT_TRUE(idx_reader(dir.path("compressed-named-as-plain"), idx_kind::images).compressed());
    EXPECT_FALSE(idx_reader(dir.path("plain-named.gz"), idx_kind::images).compressed());
}

TEST_F(idx, gzip_of_several_members_is_one_stream) {
    bytes const plain = idx_images(9, 3, 3);
    bytes const head = gzip(first(plain, 20));
    std::string const path = dir.write("members.gz", joined(head, gzip(bytes(plain.begin() + 20, plain.end()))));
    EXPECT_EQ(read_all(path, idx_kind::images), bytes(plain.begin() + 16, plain.end()));
}

TEST_F(idx, skips_to_an_item_in_plain_and_gzip_files) {
    bytes const plain = idx_images(5000, 9, 11);
    for (std::string const& path : {dir.write("p", plain), dir.write("z", gzip(plain))}) {
        idx_reader reader(path, idx_kind::images);
        bytes two(2 * 99);
        reader.skip_to(4321);
        reader.read(two);
        EXPECT_TRUE(std::equal(two.begin(), two.end(), plain.begin() + 16 + 4321 * 99)) << path;
        EXPECT_EQ(reader.position(), 4323u);
    }
}

TEST_F(idx, empty_and_truncated_headers) {
    bytes const good = idx_images(5, 4, 3);
    expect_fault(dir.write("empty", {}), idx_kind::images, {0, "magic", "the end of the file", "4 bytes"});
    expect_fault(dir.write("one", first(good, 1)), idx_kind::images,
                 {0, "magic", "1 of 4 bytes, then the end of the file", "4 bytes"});
    expect_fault(dir.write("three", first(good, 3)), idx_kind::images,
                 {0, "magic", "3 of 4 bytes, then the end of the file", "4 bytes"});
    expect_fault(dir.write("no dimension", first(good, 4)), idx_kind::images,
                 {4, "dimension 0", "the end of the file", "4 bytes"});
    expect_fault(dir.write("part", first(good, 14)), idx_kind::images,
                 {12, "dimension 2", "2 of 4 bytes, then the end of the file", "4 bytes"});
    expect_fault(dir.write("z", gzip(first(good, 14))), idx_kind::images,
                 {12, "dimension 2", "2 of 4 bytes, then the end of the file", "4 bytes"});
}

TEST_F(idx, wrong_magic) {
    bytes file = idx_images(5, 4, 3);
    file[0] = 1;
    expect_fault(dir.write("m0", file), idx_kind::images, {0, "magic", "0x01 0x00", "0x00 0x00"});
    file[0] = 0;
    file[1] = 0xff;
    expect_fault(dir.write("m1", file), idx_kind::images, {0, "magic", "0x00 0xff", "0x00 0x00"});
}

TEST_F(idx, other_formats_are_named) {
    auto const told = [&](bytes const& contents) -> std::string {
        try {
            idx_reader(dir.write("other", contents), idx_kind::images);
        } catch (source_error const& e) {
            return e.what();
        }
        return "";
    };
    EXPECT_THAT(told({0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'}), EndsWith("an HDF5 file: give it with --from hdf5"));
    EXPECT_THAT(told({'P', 'K', 3, 4}), HasSubstr("a zip archive: unpack it"));
    EXPECT_THAT(told({'<', 'h', 't', 'm', 'l'}), HasSubstr("error page of a failed download"));
    EXPECT_THAT(told(gzip(gzip(idx_images(1, 1, 1)))), EndsWith("gzip data inside gzip data: unpack it once"));
    EXPECT_THAT(told({'h', 'e', 'l', 'l', 'o'}), HasSubstr("this is no IDX file"));
}

TEST_F(idx, wrong_type) {
    expect_fault(dir.write("u", joined(idx_header(0x0a, {1, 1, 3}), bytes(12))), idx_kind::images,
                 {2, "type", "0x0a", "0x08 (unsigned byte), 0x09, 0x0b, 0x0c, 0x0d or 0x0e"});
}

TEST_F(idx, other_types_are_read_into_memorys_byte_order) {
    bytes const float_1_5{0x3f, 0xc0, 0, 0};
    idx_reader reader(dir.write("f", joined(idx_header(0x0d, {1, 1, 1}), float_1_5)), idx_kind::images);
    EXPECT_EQ(reader.form().type, element_type::f32);
    bytes four(4);
    reader.read(four);
    EXPECT_EQ(element_at(element_type::f32, four, 0), 1.5);
}

TEST_F(idx, labels_given_as_images_and_images_as_labels) {
    std::string const labels = dir.write("labels", idx_labels(7));
    std::string const images = dir.write("images", gzip(idx_images(5, 4, 3)));
    expect_fault(labels, idx_kind::images, {3, "rank", "1", "2 to 4 (count, then the dimensions of a sample)"});
    expect_fault(images, idx_kind::labels, {3, "rank", "3", "1 (count)"});
    try {
        idx_reader(images, idx_kind::labels);
        FAIL();
    } catch (source_error const& e) {
        EXPECT_THAT(e.what(), StartsWith(images + " (gzip): offset 3: rank: "));
        EXPECT_THAT(e.what(), EndsWith("are --images and --labels swapped?"));
    }
}

TEST_F(idx, ranks_that_are_neither) {
    for (unsigned const rank : {0u, 5u, 255u}) {
        bytes file{0, 0, 8, static_cast<std::uint8_t>(rank)};
        file.resize(4 + 4 * 255 + 100, 1);
        expect_fault(dir.write("r", file), idx_kind::images,
                     {3, "rank", std::to_string(rank), "2 to 4 (count, then the dimensions of a sample)"});
    }
}

TEST_F(idx, a_dimension_of_zero) {
    expect_fault(dir.write("n", idx_header(8, {0, 28, 28})), idx_kind::images, {4, "dimension 0", "0", "at least 1"});
    expect_fault(dir.write("w", idx_header(8, {3, 28, 0})), idx_kind::images, {12, "dimension 2", "0", "at least 1"});
    expect_fault(dir.write("l", idx_header(8, {0})), idx_kind::labels, {4, "dimension 0", "0", "at least 1"});
}

TEST_F(idx, dimensions_whose_product_overflows) {
    std::uint32_t const m = 0xffffffff;
    expect_fault(dir.write("o", joined(idx_header(8, {m, m, m}), bytes(10))), idx_kind::images,
                 {4, "size", "4294967295 x 4294967295 x 4294967295 bytes, more than any file holds",
                  "dimensions whose product fits 63 bits"});
    // 2^64 exactly: wraps to 0 where it is not looked for.
    expect_fault(
        dir.write("w", joined(idx_header(8, {65536, 65536, 65536, 65536}), bytes(10))), idx_kind::images,
        {4, "size", "65536 x 65536 x 65536 x 65536 bytes, more than any file holds", "dimensions whose product fits 63 bits"});
}

TEST_F(idx, a_plain_file_shorter_than_its_header_says) {
    bytes const good = idx_images(5, 4, 3);
    expect_fault(dir.write("t", first(good, 75)), idx_kind::images,
                 {75, "data", "the end of the file after 75 bytes", "76 bytes (16 of header and 5 x 4 x 3)"});
    expect_fault(dir.write("h", joined(idx_header(8, {60000, 28, 28}), bytes(100))), idx_kind::images,
                 {116, "data", "the end of the file after 116 bytes", "47040016 bytes (16 of header and 60000 x 28 x 28)"});
}

TEST_F(idx, a_plain_file_longer_than_its_header_says) {
    expect_fault(dir.write("t", joined(idx_images(5, 4, 3), {1, 2})), idx_kind::images,
                 {76, "trailing bytes", "2 bytes after the last element", "the end of the file at 76 (5 x 4 x 3)"});
}

TEST_F(idx, a_gzip_stream_shorter_than_its_header_says) {
    bytes const good = idx_images(500, 4, 3);
    expect_fault(dir.write("t", gzip(first(good, 75))), idx_kind::images,
                 {75, "data", "the end of the data after 75 bytes", "6016 bytes (500 items of 12)"});
}

TEST_F(idx, a_gzip_stream_longer_than_its_header_says) {
    expect_fault(dir.write("t", gzip(joined(idx_images(5, 4, 3), {1}))), idx_kind::images,
                 {76, "trailing bytes", "more bytes after the last element", "the end of the data at 76"});
}

TEST_F(idx, a_gzip_header_that_promises_more_than_gzip_can_hold) {
    bytes const file = gzip(joined(idx_header(8, {4000000000u, 28, 28}), bytes(100)));
    std::string const limit = std::to_string(1032 * file.size());
    expect_fault(dir.write("lie", file), idx_kind::images,
                 {4, "size", "3136000000016 bytes (4000000000 x 28 x 28)",
                  "at most " + limit + ", the most that deflate makes of " + std::to_string(file.size()) + " bytes"});
}

TEST_F(idx, a_gzip_file_cut_short_or_damaged_is_told_with_its_offsets) {
    bytes const packed = gzip(idx_images(500, 28, 28));
    auto const told = [&](bytes const& contents) -> std::string {
        try {
            read_all(dir.write("z.gz", contents), idx_kind::images);
        } catch (error const& e) {
            EXPECT_EQ(e.code(), errc::invalid_data);
            return e.what();
        }
        return "";
    };
    std::string const cut = told(first(packed, packed.size() / 2));
    EXPECT_THAT(cut, HasSubstr("z.gz: gzip: the file ends inside its compressed data at compressed offset " +
                               std::to_string(packed.size() / 2)));
    EXPECT_THAT(told(first(packed, packed.size() - 4)), HasSubstr("the file ends inside"));

    bytes damaged = packed;
    damaged[packed.size() - 6] ^= 1;  // in the CRC
    EXPECT_THAT(told(damaged), HasSubstr("incorrect data check"));
    EXPECT_THAT(told(joined(packed, {'x', 'y', 'z', 0, 0, 0, 0, 0, 0, 0, 0, 0})), HasSubstr("incorrect header check"));
}

TEST_F(idx, files_that_are_no_files) {
    auto const code_of = [](std::string const& path) -> std::optional<errc> {
        try {
            idx_reader(path, idx_kind::images);
        } catch (error const& e) {
            EXPECT_THAT(e.what(), HasSubstr(path));
            return e.code();
        }
        return std::nullopt;
    };
    EXPECT_EQ(code_of(dir.path("missing")), errc::not_found);
    EXPECT_EQ(code_of(dir.path("")), errc::invalid_data);
    ASSERT_EQ(::mkfifo(dir.path("fifo").c_str(), 0600), 0);
    EXPECT_EQ(code_of(dir.path("fifo")), errc::invalid_data) << "and it does not wait for a writer";
}

TEST_F(idx, fashion_mnist_where_it_is_installed) {
    std::string const folder = "/usr/share/datasets/fashion-mnist/";
    if (!std::filesystem::exists(folder + "train-images-idx3-ubyte.gz"))
        GTEST_SKIP() << "Debian package dataset-fashion-mnist is not installed";
    idx_reader images(folder + "t10k-images-idx3-ubyte.gz", idx_kind::images);
    EXPECT_EQ(images.items(), 10000u);
    EXPECT_EQ(images.form().dimensions, (std::vector<std::uint64_t>{images.items(), 28, 28}));
    bytes const labels = read_all(folder + "train-labels-idx1-ubyte.gz", idx_kind::labels);
    ASSERT_EQ(labels.size(), 60000u);
    for (std::uint8_t c = 0; c < 10; ++c) EXPECT_EQ(std::count(labels.begin(), labels.end(), c), 6000);
}

}  // namespace
}  // namespace muster
