// Every format to convert: what is read of it, and what is refused, with the words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "io/hdf5/hdf5.hpp"
#include "test_sources.hpp"

namespace muster {
namespace {

using namespace test;
using testing::AllOf;
using testing::HasSubstr;

/// An array as NumPy saves it.
bytes npy(std::string const& descr, std::string const& shape, bytes const& elements, unsigned version = 1, bool fortran = false) {
    std::string header =
        "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }";
    header += std::string(63 - (header.size() + 10) % 64, ' ') + "\n";
    bytes out{0x93,
              'N',
              'U',
              'M',
              'P',
              'Y',
              static_cast<std::uint8_t>(version),
              0,
              static_cast<std::uint8_t>(header.size() & 255),
              static_cast<std::uint8_t>(header.size() >> 8)};
    if (version > 1) out.insert(out.end(), {0, 0});
    out.insert(out.end(), header.begin(), header.end());
    return joined(out, elements);
}

bytes counted(std::size_t count) {
    bytes all(count);
    for (std::size_t i = 0; i < count; ++i) all[i] = pixel(i);
    return all;
}

void put(bytes& out, std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) out.push_back(static_cast<std::uint8_t>(i < 8 ? value >> (8 * i) : 0));
}

/// A zip archive of one entry or more; `claimed` is the length that the directory tells of each.
bytes zip(std::vector<std::pair<std::string, bytes>> const& entries, bool deflated, std::uint32_t claimed = 0) {
    bytes out;
    bytes directory;
    for (auto const& [name, contents] : entries) {
        bytes stored = contents;
        if (deflated) {
            bytes const packed = gzip(contents);
            stored.assign(packed.begin() + 10, packed.end() - 8);  // between gzip's header and trailer
        }
        auto const crc = static_cast<std::uint32_t>(::crc32(0, contents.data(), static_cast<uInt>(contents.size())));
        auto const length = claimed != 0 ? claimed : static_cast<std::uint32_t>(contents.size());
        bytes common;
        put(common, 20, 2);
        put(common, 0, 2);
        put(common, deflated ? 8 : 0, 2);
        put(common, 0, 4);
        put(common, crc, 4);
        put(common, stored.size(), 4);
        put(common, length, 4);
        put(common, name.size(), 2);
        put(common, 0, 2);
        std::size_t const at = out.size();
        out = joined(joined(joined(out, {'P', 'K', 3, 4}), common), bytes(name.begin(), name.end()));
        out = joined(out, stored);
        directory = joined(joined(directory, {'P', 'K', 1, 2, 20, 0}), common);
        put(directory, 0, 2 + 2 + 2 + 4);
        put(directory, at, 4);
        directory.insert(directory.end(), name.begin(), name.end());
    }
    std::size_t const begin = out.size();
    out = joined(joined(out, directory), {'P', 'K', 5, 6, 0, 0, 0, 0});
    put(out, entries.size(), 2);
    put(out, entries.size(), 2);
    put(out, directory.size(), 4);
    put(out, begin, 4);
    put(out, 0, 2);
    return out;
}

TEST_F(sources, npy_of_every_version_and_its_labels) {
    bytes const elements = counted(6 * 4 * 5);
    std::string const labels = dir.write("y.npy", npy("<i8", "(6,)", [] {
                                             bytes all;
                                             for (std::uint64_t i = 0; i < 6; ++i) put(all, i % 3, 8);
                                             return all;
                                         }()));
    for (unsigned const version : {1u, 2u, 3u}) {
        auto const from = open(dir.write("x.npy", npy("|u1", "(6, 4, 5)", elements, version)), {}, labels);
        EXPECT_EQ(from->facts().shape, (image_shape{1, 4, 5}));
        EXPECT_EQ(from->scan_labels().largest, 2u);
        contents const all = read_all(*from);
        EXPECT_EQ(all.images, elements);
        EXPECT_EQ(all.labels, (std::vector<std::uint32_t>{0, 1, 2, 0, 1, 2}));
    }
}

TEST_F(sources, npy_big_endian_and_channels_last) {
    bytes const pair{0, 1, 0x12, 0x34};
    contents const all = read_all(*open(dir.write("b.npy", npy(">u2", "(2,)", pair))));
    EXPECT_EQ(element_at(element_type::u16, all.images, 1), 0x1234);

    bytes const hwc = counted(2 * 5 * 6 * 3);
    auto const from = open(dir.write("hwc.npy", npy("|u1", "(2, 5, 6, 3)", hwc)));
    EXPECT_EQ(from->facts().shape, (image_shape{3, 5, 6}));
    bytes const planes = read_all(*from).images;
    for (std::size_t n = 0; n < 2; ++n)
        for (std::size_t c = 0; c < 3; ++c)
            for (std::size_t i = 0; i < 30; ++i) ASSERT_EQ(planes[n * 90 + c * 30 + i], hwc[n * 90 + i * 3 + c]);
    EXPECT_THAT(refused(dir.write("which.npy", npy("|u1", "(2, 3, 5, 3)", counted(90)))),
                HasSubstr("give --order chw or --order hwc"));
}

TEST_F(sources, npy_that_is_refused_by_name) {
    EXPECT_THAT(refused(dir.write("f.npy", npy("|u1", "(2, 3)", counted(6), 1, true))),
                HasSubstr("fortran_order: found True, expected False"));
    EXPECT_THAT(refused(dir.write("o.npy", npy("|O", "(2,)", counted(16)))), HasSubstr("Python objects are not read"));
    EXPECT_THAT(refused(dir.write("h.npy", npy("<f2", "(2,)", counted(4)))), HasSubstr("descr: found '<f2'"));
    EXPECT_THAT(refused(dir.write("v.npy", npy("|u1", "(2,)", counted(2), 4))),
                HasSubstr("version: found 4.0, expected 1.0, 2.0 or 3.0"));
    // Lies: more than the file holds, more than memory, a product that overflows, a header of 4 GiB.
    EXPECT_THAT(refused(dir.write("l.npy", npy("|u1", "(1000000000000, 28)", counted(56)))),
                HasSubstr("data: found the end of the file after"));
    EXPECT_THAT(refused(dir.write("p.npy", npy("<f8", "(4294967296, 4294967296)", counted(56)))),
                HasSubstr("more than any file holds"));
    EXPECT_THAT(refused(dir.write("g.npy", {0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 0xff, 0xff, 0xff, 0xff})),
                HasSubstr("header length: found 4294967295"));
    bytes cut = npy("|u1", "(2, 3)", counted(6));
    EXPECT_THAT(refused(dir.write("c.npy", first(cut, 40))), HasSubstr("the file is truncated"));
    EXPECT_THAT(refused(dir.write("d.npy", npy("|u1", "(2, ", counted(6)))), HasSubstr("header: found "));
}

TEST_F(sources, npz_stored_and_deflated) {
    bytes const images = counted(7 * 30);
    bytes const labels{0, 1, 2, 3, 4, 5, 6};
    for (bool const deflated : {false, true}) {
        std::string const path = dir.write(
            "a.npz",
            zip({{"x_train.npy", npy("|u1", "(7, 5, 6)", images)}, {"y_train.npy", npy("|u1", "(7,)", labels)}}, deflated));
        auto found = open_sources({"", path, ""}, {});
        ASSERT_EQ(found.size(), 1u);
        EXPECT_EQ(found[0].split, "train");
        EXPECT_THAT(
            found[0].source->notes().words,
            testing::ElementsAre(
                "samples: array 'x_train' of a.npz, labels: 'y_train', by their names; --images and --labels take others, "
                "--labels none none"));
        EXPECT_THAT(refused(path, {.labels = "y_train"}), HasSubstr("give --images with that name too"));
        EXPECT_THAT(open(path, {.labels = "none"})->notes().words,
                    testing::ElementsAre(HasSubstr("samples: array 'x_train' of a.npz, by its name;")));
        EXPECT_THAT(open(path, {.images = "x_train", .labels = "y_train"})->notes().words, testing::IsEmpty());
        contents const all = read_all(*found[0].source);
        EXPECT_EQ(all.images, images);
        EXPECT_EQ(all.labels, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6}));
    }
}

TEST_F(sources, an_archive_without_usual_labels_says_so) {
    bytes const archive = zip({{"data.npy", npy("|u1", "(1, 5, 6)", counted(30))}, {"foo.npy", npy("|u1", "(1,)", {0})}}, false);
    for (char const* const name : {"d.npz", "d.zip"})
        EXPECT_THAT(open(dir.write(name, archive))->notes().words,
                    testing::ElementsAre(HasSubstr("without labels, as no array has a usual name of labels (y, labels, …)")));
}

TEST_F(sources, npz_that_lies_or_is_damaged) {
    bytes const array = npy("|u1", "(100000, 5, 6)", counted(30));
    EXPECT_THAT(refused(dir.write("bomb.npz", zip({{"x.npy", array}}, true, 3000128))),
                HasSubstr("the most that deflate makes of"));
    bytes damaged = zip({{"x.npy", npy("|u1", "(70, 5, 6)", counted(2100))}}, true);
    damaged[200] ^= 1;
    EXPECT_THAT(refused(dir.write("crc.npz", damaged)), AllOf(HasSubstr("crc.npz: zip: "), HasSubstr("the archive is damaged")));
    EXPECT_THAT(refused(dir.write("none.npz", {'P', 'K', 3, 4, 0, 0})), HasSubstr("is no zip archive, or a damaged one"));
    std::string const other = dir.write("o.npz", zip({{"weights.npy", array}}, false));
    EXPECT_THAT(refused(other), AllOf(HasSubstr("it has weights"), HasSubstr("give --images and --labels")));
}

TEST_F(sources, cifar_records_of_several_files) {
    std::filesystem::create_directory(dir.path("c10"));
    bytes records;
    for (std::size_t i = 0; i < 5; ++i) {
        records.push_back(static_cast<std::uint8_t>(i * 2));
        for (std::size_t j = 0; j < 3072; ++j) records.push_back(pixel(i * 3072 + j));
    }
    dir.write("c10/data_batch_1.bin", first(records, 3073 * 2));
    dir.write("c10/data_batch_2.bin", bytes(records.begin() + 3073 * 2, records.end()));
    text("c10/batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
    auto const from = open(dir.path("c10"));
    EXPECT_EQ(from->facts().shape, (image_shape{3, 32, 32}));
    EXPECT_EQ(from->facts().class_names.at(9), "j");
    contents const all = read_all(*from);
    EXPECT_EQ(all.labels, (std::vector<std::uint32_t>{0, 2, 4, 6, 8}));
    EXPECT_EQ(all.images, counted(5 * 3072));
    EXPECT_THAT(refused(dir.write("short.bin", bytes(3074 * 3073 - 1)), {.format = source_format::cifar10}),
                HasSubstr("expected records of 3073 bytes (CIFAR-10)"));

    bytes hundred{7, 42};
    hundred.resize(3074);
    std::string const path = dir.write("train.bin", hundred);
    EXPECT_EQ(read_all(*open(path)).labels[0], 42u) << "the fine label";
    EXPECT_EQ(read_all(*open(path, {.coarse = true})).labels[0], 7u);
}

TEST_F(sources, arrays_of_any_hdf5_file) {
    hdf5::place const where{dir.path("a.h5"), "/"};
    hdf5::place const group{where.file, "/g"};
    bytes const elements = counted(5 * 6 * 4);
    {
        hdf5::file made = hdf5::create_file(where, hdf5::file_access(where, 1, nullptr));
        hdf5::group const in = hdf5::create_group(where, made, "g");
        std::uint64_t const extent[] = {5, 6};
        hdf5::dataset const x = hdf5::create_dataset(group, in, "x", element_type::f32, extent, {});
        hdf5::write(group, x, {0, 5}, element_type::f32, elements.data(), hdf5::transfer(where, false));
        hdf5::close(where, std::move(made));
    }
    EXPECT_THAT(refused(where.file), HasSubstr("give --images and --labels"));
    auto const from = open(where.file, {.images = "g/x"});
    EXPECT_EQ(from->facts().shape, (image_shape{1, 1, 6, true}));
    EXPECT_EQ(read_all(*from).images, elements);
    EXPECT_THAT(refused(where.file, {.images = "/g/y"}), HasSubstr("a.h5: has no /g/y"));
}

TEST_F(sources, what_cannot_be_told_is_asked_for) {
    EXPECT_THAT(refused(text("what", "hello world")), HasSubstr("its format cannot be told from its contents"));
    EXPECT_THAT(refused(text("python.jpg", "\xff\xd8\xff\xe0 JFIF")),
                testing::EndsWith("python.jpg: is a JPEG picture: give the folder with --from images"));
    EXPECT_THAT(refused(dir.path("missing")), HasSubstr("missing: No such file"));
    std::filesystem::create_directory(dir.path("void"));
    EXPECT_THAT(refused(dir.path("void")), HasSubstr("holds no picture"));
}

}  // namespace
}  // namespace muster
