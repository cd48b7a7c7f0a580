#include "io/dataset/dataset.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "io/arrays/item_array.hpp"
#include "io/convert/convert.hpp"
#include "io/dataset/checksum.hpp"
#include "test_files.hpp"

namespace muster {
namespace {

using namespace test;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

template <typename Call>
std::string message_of(Call&& call, errc code) {
    try {
        call();
    } catch (error const& e) {
        EXPECT_EQ(e.code(), code) << e.what();
        return e.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
}

class dataset_file : public testing::Test {
  protected:
    /// Images of 20 x 30 (600 bytes, 1747 a block of checksums), so that 4000 are three blocks.
    convert_request request(std::uint32_t train = 4000, std::uint32_t test = 10) {
        convert_request all;
        all.splits = {{"train", dir.write("ti", idx_images(train, 20, 30)), dir.write("tl.gz", gzip(idx_labels(train)))},
                      {"test", dir.write("vi", gzip(idx_images(test, 20, 30))), dir.write("vl", idx_labels(test))}};
        all.output = dir.path("out.h5");
        all.writer.name = "made up";
        all.writer.durable = false;
        return all;
    }
    static void expect_contents(dataset const& from, std::size_t first, std::size_t count) {
        bytes images(count * from.image_bytes());
        bytes labels(count);
        from.read(first, count, images, labels);
        for (std::size_t i = 0; i < images.size(); ++i) ASSERT_EQ(images[i], pixel(first * from.image_bytes() + i)) << i;
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(labels[i], label(first + i));
    }
    /// Flips a bit of the file.
    void damage(std::uint64_t offset) {
        bytes contents = dir.read("out.h5");
        contents.at(offset) ^= 4;
        dir.write("out.h5", contents);
    }
    scratch dir;
};

TEST_F(dataset_file, conversion_keeps_every_byte_and_says_what_it_is) {
    convert_report const report = convert(request());
    EXPECT_EQ(report.classes, 10u);
    EXPECT_EQ(report.bytes, 4010u * 601u);
    EXPECT_EQ(dataset::splits(dir.path("out.h5")), (std::vector<std::string>{"test", "train"}));
    dataset const train = dataset::open(dir.path("out.h5"));
    EXPECT_EQ(train.size(), 4000u);
    EXPECT_EQ(train.shape(), (image_shape{1, 20, 30}));
    dataset_info const& info = train.info();
    EXPECT_EQ(info.name, "made up");
    EXPECT_EQ(info.split, "train");
    EXPECT_EQ(info.created_by, "muster 0.1.0");
    EXPECT_EQ(info.format_version, 1u);
    EXPECT_EQ(info.classes, 10u);
    EXPECT_EQ(info.source_images, "ti");
    EXPECT_EQ(info.source_labels, "tl.gz");
    EXPECT_EQ(info.checksum_block_samples, 1747u);
    EXPECT_EQ(info.chunk_samples, 0u);
    ASSERT_TRUE(info.image_offset);
    EXPECT_EQ(*info.image_offset % (1 << 20), 0u) << "aligned";
    expect_contents(train, 0, 4000);
    expect_contents(train, 1234, 77);
    expect_contents(dataset::open(dir.path("out.h5"), "test"), 0, 10);
    train.verify();
    EXPECT_FALSE(std::filesystem::exists(dir.path("out.h5.partial")));
}

TEST_F(dataset_file, images_lie_contiguous_at_the_offset_told) {
    convert(request());
    dataset const train = dataset::open(dir.path("out.h5"));
    bytes const file = dir.read("out.h5");
    for (std::size_t i = 0; i < 4000 * 600; ++i) ASSERT_EQ(file[*train.info().image_offset + i], pixel(i));
}

TEST_F(dataset_file, checksums_are_as_the_format_defines) {
    convert(request());
    bytes images(4000 * 600);
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = pixel(i);
    std::span<std::uint8_t const> const all(images);
    std::size_t const block = 1747 * 600;
    std::vector<std::uint64_t> const blocks{xxh3_64(all.first(block)), xxh3_64(all.subspan(block, block)),
                                            xxh3_64(all.subspan(2 * block))};
    EXPECT_EQ(dataset::open(dir.path("out.h5")).info().checksum_images, fold_checksums(blocks));
}

TEST_F(dataset_file, equal_input_gives_an_equal_file) {
    convert(request());
    bytes const once = dir.read("out.h5");
    convert_request again = request();
    again.writer.replace = true;
    convert(again);
    EXPECT_EQ(dir.read("out.h5"), once);
}

TEST_F(dataset_file, chunks_and_class_names) {
    convert_request all = request(100);
    all.chunk_samples = 33;
    for (char c = 'a'; c <= 'j'; ++c) all.class_names.push_back(std::string(1, c) + "-class");
    convert(all);
    dataset const train = dataset::open(dir.path("out.h5"));
    EXPECT_EQ(train.info().chunk_samples, 33u);
    EXPECT_FALSE(train.info().image_offset);
    EXPECT_EQ(train.info().class_names, all.class_names);
    expect_contents(train, 0, 100);
    train.verify();
}

TEST_F(dataset_file, a_file_is_not_replaced_unasked) {
    convert_request const all = request(20);
    dir.write("out.h5", {'x'});
    EXPECT_THAT(message_of([&] { convert(all); }, errc::usage),
                EndsWith("out.h5: exists; remove it, choose another name, or give --force"));
    EXPECT_EQ(dir.read("out.h5"), bytes{'x'});
}

TEST_F(dataset_file, a_failed_conversion_leaves_the_folder_as_it_was) {
    convert_request all = request(3000);
    // Cut in its data, which shows only while reading: the first pieces are written by then.
    bytes const packed = gzip(idx_images(3000, 20, 30));
    all.splits[0].images = dir.write("cut.gz", first(packed, packed.size() - 100));
    all.writer.replace = true;
    dir.write("out.h5", {'x'});
    std::size_t const before = dir.entries();
    EXPECT_THAT(message_of([&] { convert(all); }, errc::invalid_data), HasSubstr("cut.gz: gzip: the file ends inside"));
    EXPECT_EQ(dir.entries(), before);
    EXPECT_EQ(dir.read("out.h5"), bytes{'x'}) << "the file of this name stays";
}

TEST_F(dataset_file, labels_beyond_the_classes_are_told_with_their_offset) {
    convert_request all = request(3000);
    all.classes = 9;
    std::string const path = dir.path("tl.gz");
    try {
        convert(all);
        FAIL();
    } catch (source_error const& e) {
        EXPECT_EQ(e.file(), path);
        EXPECT_EQ(e.field(), "label");
        EXPECT_EQ(e.offset(), 8u + 8u);  // (8 * 7 + 3) % 10 is the first 9
        EXPECT_EQ(e.found(), "9 for item 8");
        EXPECT_EQ(e.expected(), "below 9, the number of classes");
    }
}

TEST_F(dataset_file, trailing_bytes_in_a_compressed_file_are_found) {
    convert_request all = request(30);
    all.splits[1].labels = dir.write("long.gz", gzip(joined(idx_labels(10), {0})));
    EXPECT_THAT(message_of([&] { convert(all); }, errc::invalid_data), HasSubstr("long.gz (gzip): offset 18: trailing bytes"));
}

TEST_F(dataset_file, splits_and_names_that_do_not_fit_together) {
    convert_request all = request(30);
    all.splits[1].images = dir.write("other", idx_images(10, 20, 31));
    EXPECT_THAT(message_of([&] { convert(all); }, errc::usage), HasSubstr("its samples are 1 x 20 x 31 of uint8, those of"));
    all = request(30);
    all.class_names = {"a", "b"};
    all.classes = 10;
    EXPECT_THAT(message_of([&] { convert(all); }, errc::usage), HasSubstr("2 class names for 10 classes"));
    all = request(30);
    all.splits[1].labels = all.splits[0].labels;
    EXPECT_THAT(message_of([&] { convert(all); }, errc::invalid_data), HasSubstr("offset 4: label count: found 30, expected 10"));
    all = request(30);
    all.output = dir.path("no/such/folder.h5");
    EXPECT_THAT(message_of([&] { convert(all); }, errc::not_found), HasSubstr("check that its folder exists"));
}

TEST_F(dataset_file, reading_outside_is_refused) {
    convert(request(30));
    dataset const train = dataset::open(dir.path("out.h5"));
    bytes images(600 * 2);
    bytes labels(2);
    EXPECT_NO_THROW(train.read(28, 2, images, labels));
    EXPECT_NO_THROW(train.read(28, 2, images, {}));
    EXPECT_NO_THROW(train.read(30, 0, {}, {}));
    EXPECT_THAT(message_of([&] { train.read(29, 2, images, labels); }, errc::usage), HasSubstr("/train has 30"));
    EXPECT_THAT(message_of([&] { train.read(0, 1, images, labels); }, errc::usage), HasSubstr("give 600 and 1"));
    EXPECT_THAT(message_of([&] { train.read(SIZE_MAX, 2, images, labels); }, errc::usage), HasSubstr("/train has 30"));
}

TEST_F(dataset_file, splits_that_are_not_there) {
    convert(request(30));
    EXPECT_THAT(message_of([&] { dataset::open(dir.path("out.h5"), "tran"); }, errc::not_found),
                AllOf(HasSubstr("out.h5: has no split 'tran'; it has test, train"), HasSubstr("did you mean train?")));
}

TEST_F(dataset_file, verify_finds_a_flipped_bit_and_names_the_samples) {
    convert(request());
    std::uint64_t const offset = *dataset::open(dir.path("out.h5")).info().image_offset;
    damage(offset + 2000 * 600 + 5);
    dataset const train = dataset::open(dir.path("out.h5"));
    EXPECT_THAT(
        message_of([&] { train.verify(); }, errc::invalid_data),
        HasSubstr("out.h5: /train/images: samples 1747 to 3493 (block 1, bytes 2096776 to 3144975 of the file): checksum "));
    EXPECT_NO_THROW(dataset::open(dir.path("out.h5"), "test").verify());
}

TEST_F(dataset_file, verify_finds_damaged_labels_and_checksums) {
    convert(request());
    bytes const good = dir.read("out.h5");
    bytes labels(4000);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = label(i);
    auto const at = std::search(good.begin(), good.end(), labels.begin(), labels.end());
    ASSERT_NE(at, good.end());
    damage(static_cast<std::uint64_t>(at - good.begin()) + 3999);
    EXPECT_THAT(message_of([&] { dataset::open(dir.path("out.h5")).verify(); }, errc::invalid_data),
                HasSubstr("/train/labels: samples 3494 to 3999 (block 2, bytes "));

    dir.write("out.h5", good);
    bytes images(1747 * 600);
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = pixel(i);
    std::uint64_t const checksum = xxh3_64(images);
    bytes stored(8);
    for (std::size_t i = 0; i < 8; ++i) stored[i] = static_cast<std::uint8_t>(checksum >> (8 * i));
    auto const place = std::search(good.begin(), good.end(), stored.begin(), stored.end());
    ASSERT_NE(place, good.end()) << "block checksums are stored little-endian";
    damage(static_cast<std::uint64_t>(place - good.begin()));
    EXPECT_THAT(message_of([&] { dataset::open(dir.path("out.h5")).verify(); }, errc::invalid_data),
                HasSubstr("/train/image_checksums: checksum "));
}

TEST_F(dataset_file, files_that_are_none) {
    convert(request(30));
    EXPECT_THAT(message_of([&] { dataset::open(dir.path("none.h5")); }, errc::not_found), HasSubstr("none.h5: No such file"));
    dir.write("text.h5", bytes(5000, 'x'));
    EXPECT_THAT(message_of([&] { dataset::open(dir.path("text.h5")); }, errc::library),
                AllOf(HasSubstr("HDF5: H5Fopen failed: "), HasSubstr("text.h5"), HasSubstr("file signature not found"),
                      HasSubstr("this is no HDF5 file: make one with")));
    bytes const good = dir.read("out.h5");
    dir.write("short.h5", first(good, good.size() / 2));
    EXPECT_THAT(message_of([&] { dataset::open(dir.path("short.h5")); }, errc::library),
                AllOf(HasSubstr("short.h5"), HasSubstr("truncated file"), EndsWith("copy or convert it again (code -1)")));
}

TEST_F(dataset_file, an_error_carries_call_file_and_stack) {
    dir.write("text.h5", bytes(5000, 'x'));
    try {
        dataset::open(dir.path("text.h5"));
        FAIL();
    } catch (hdf5_error const& e) {
        EXPECT_EQ(e.call(), "H5Fopen");
        EXPECT_EQ(e.file(), dir.path("text.h5"));
        EXPECT_GE(e.stack().size(), 2u);
        EXPECT_LT(e.native_code(), 0);
    }
}

TEST_F(dataset_file, foreign_hdf5_files_are_refused_in_words) {
    hdf5::place const where{dir.path("foreign.h5"), "/"};
    {
        hdf5::file made = hdf5::create_file(where, hdf5::file_access(where, 1, nullptr));
        hdf5::close(where, std::move(made));
    }
    EXPECT_THAT(message_of([&] { dataset::open(where.file); }, errc::invalid_data),
                HasSubstr("attribute format is '', expected 'muster.dataset': an HDF5 file, but no muster dataset"));
    std::filesystem::remove(where.file);
    {
        hdf5::file made = hdf5::create_file(where, hdf5::file_access(where, 1, nullptr));
        hdf5::write_attribute(where, made.get(), "format", std::string("muster.dataset"));
        hdf5::write_attribute(where, made.get(), "format_version", std::uint64_t{4});
        hdf5::close(where, std::move(made));
    }
    EXPECT_THAT(message_of([&] { dataset::open(where.file); }, errc::invalid_data),
                HasSubstr("format_version is 4, this muster reads 1 to 3"));
}

TEST_F(dataset_file, an_attribute_columns_of_another_writer_is_ignored) {
    convert(request());
    hdf5::place const where{dir.path("out.h5"), "/"};
    hdf5::file opened = hdf5::open_file(where, hdf5::file_access(where, 1, nullptr), true);
    hdf5::write_attribute(where, hdf5::open_group(where, opened, "train").get(), "columns",
                          std::vector<std::string>{"left", "right"});
    hdf5::close(where, std::move(opened));
    dataset const train = dataset::open(where.file);
    EXPECT_TRUE(train.info().columns.empty());
    train.verify();
}

TEST_F(dataset_file, columns_of_a_table_that_are_not_one_an_element_are_ignored) {
    convert_request table;
    std::string const text = "1,2,0\n3,4,1\n";
    table.splits = {{"train", dir.write("t.csv", bytes(text.begin(), text.end())), ""}};
    table.output = dir.path("table.h5");
    table.writer.durable = false;
    table.writer.replace = true;
    table.reading.format = source_format::csv;
    table.reading.label_column = "3";
    hdf5::place const where{table.output, "/"};
    auto const columns_with = [&](std::vector<std::string> const& names) {
        convert(table);
        hdf5::file opened = hdf5::open_file(where, hdf5::file_access(where, 1, nullptr), true);
        hdf5::write_attribute(where, hdf5::open_group(where, opened, "train").get(), "columns", names);
        hdf5::close(where, std::move(opened));
        return dataset::open(where.file).info().columns;
    };
    EXPECT_EQ(columns_with({"x", "y"}), (std::vector<std::string>{"x", "y"}));
    EXPECT_TRUE(columns_with({"x", "y", "z"}).empty());
}

TEST_F(dataset_file, fashion_mnist_where_it_is_installed) {
    std::string const folder = "/usr/share/datasets/fashion-mnist/";
    if (!std::filesystem::exists(folder + "train-images-idx3-ubyte.gz"))
        GTEST_SKIP() << "Debian package dataset-fashion-mnist is not installed";
    convert_request all;
    all.splits = {{"test", folder + "t10k-images-idx3-ubyte.gz", folder + "t10k-labels-idx1-ubyte.gz"}};
    all.output = dir.path("out.h5");
    convert(all);
    dataset const made = dataset::open(all.output, "test");
    made.verify();
    bytes images(10000 * 784);
    bytes labels(10000);
    made.read(0, 10000, images, labels);
    bytes wanted(images.size());
    idx_reader(all.splits[0].images, idx_kind::images).read(wanted);
    EXPECT_EQ(images, wanted);
    wanted.resize(labels.size());
    idx_reader(all.splits[0].labels, idx_kind::labels).read(wanted);
    EXPECT_EQ(labels, wanted);
    EXPECT_EQ(made.classes(), 10u);
}

}  // namespace
}  // namespace muster
