// Pictures: PNG, JPEG and WebP of every kind become the bytes that are stored, and folders of them become classes.
#include <cstdio>
#include <filesystem>

#include <jpeglib.h>
#include <webp/encode.h>

#include "io/sources/image_file.hpp"
#include "test_sources.hpp"

namespace muster {
namespace {

using namespace test;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class pictures : public sources {
  protected:
    void folder(std::vector<std::string> const& files) {
        for (std::string const& file : files) {
            std::filesystem::create_directories(std::filesystem::path(dir.path(file)).parent_path());
            if (!file.ends_with('/')) write_png({1, 1, 1, {static_cast<std::uint8_t>(++written_)}}, dir.path(file));
        }
    }
    int written_ = 0;
};

bytes png_chunk(std::string const& type, bytes const& data) {
    bytes out;
    auto const put32 = [&](std::size_t value) {
        for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(value >> shift));
    };
    put32(data.size());
    out = joined(joined(out, bytes(type.begin(), type.end())), data);
    put32(::crc32(0, out.data() + 4, static_cast<uInt>(out.size() - 4)));
    return out;
}

/// `rows` are filter bytes and pixels; `chunks` come before them.
bytes png_of(unsigned width, unsigned height, unsigned depth, unsigned colour, bytes const& rows, bytes const& chunks = {},
             unsigned interlace = 0) {
    bytes packed(compressBound(rows.size()));
    uLongf size = packed.size();
    compress(packed.data(), &size, rows.data(), rows.size());
    packed.resize(size);
    auto const small = [](unsigned value) { return static_cast<std::uint8_t>(value); };
    bytes out{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    out = joined(out, png_chunk("IHDR", {0, 0, 0, small(width), 0, 0, 0, small(height), small(depth), small(colour), 0, 0,
                                         small(interlace)}));
    return joined(joined(joined(out, chunks), png_chunk("IDAT", packed)), png_chunk("IEND", {}));
}

bytes pixels_of(bytes const& file, std::size_t channels) {
    return decode_picture(file, "p", channels).pixels;
}

TEST_F(pictures, png_of_16_bits_and_gamma_stay_as_they_are_stored) {
    bytes const linear = png_chunk("gAMA", {0, 1, 0x86, 0xa0});
    for (bytes const& chunks : {bytes(), linear, png_chunk("gAMA", {0, 0, 0xb1, 0x8f}), png_chunk("sRGB", {0})}) {
        EXPECT_EQ(pixels_of(png_of(2, 1, 16, 0, {0, 0x33, 0x33, 0x80, 0xff}, chunks), 1), (bytes{0x33, 0x80}));
        EXPECT_EQ(pixels_of(png_of(1, 1, 16, 2, {0, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc}, chunks), 3), (bytes{0x12, 0x56, 0x9a}));
        EXPECT_EQ(pixels_of(png_of(2, 1, 8, 0, {0, 50, 200}, chunks), 1), (bytes{50, 200}));
        EXPECT_EQ(pixels_of(png_of(1, 1, 8, 0, {0, 50}, chunks), 3), (bytes{50, 50, 50}));
    }
}

TEST_F(pictures, png_alpha_is_laid_on_black) {
    EXPECT_EQ(pixels_of(png_of(2, 1, 8, 4, {0, 255, 50, 100, 255}), 1), (bytes{50, 100}));
    EXPECT_EQ(pixels_of(png_of(1, 1, 8, 6, {0, 200, 100, 50, 128}), 3), (bytes{100, 50, 25}));
    EXPECT_EQ(pixels_of(png_of(1, 1, 16, 4, {0, 0xff, 0xff, 0x32, 0x10}), 1), (bytes{50}));
    EXPECT_EQ(pixels_of(png_of(2, 1, 8, 0, {0, 7, 9}, png_chunk("tRNS", {0, 9})), 1), (bytes{7, 0})) << "one gray is transparent";
    EXPECT_EQ(pixels_of(png_of(2, 1, 8, 2, {0, 1, 2, 3, 4, 5, 6}, png_chunk("tRNS", {0, 4, 0, 5, 0, 6})), 3),
              (bytes{1, 2, 3, 0, 0, 0}));
    bytes const palette = png_chunk("PLTE", {10, 20, 30, 40, 50, 60});
    EXPECT_EQ(pixels_of(png_of(2, 1, 1, 3, {0, 0x40}, palette), 3), (bytes{10, 20, 30, 40, 50, 60}));
    EXPECT_EQ(pixels_of(png_of(2, 1, 1, 3, {0, 0x40}, joined(palette, png_chunk("tRNS", {255, 51}))), 3),
              (bytes{10, 20, 30, 8, 10, 12}));
}

TEST_F(pictures, png_of_few_bits_and_interlaced) {
    EXPECT_EQ(pixels_of(png_of(4, 1, 1, 0, {0, 0x50}), 1), (bytes{0, 255, 0, 255}));
    EXPECT_EQ(pixels_of(png_of(4, 1, 2, 0, {0, 0x1b}), 1), (bytes{0, 85, 170, 255}));
    EXPECT_EQ(pixels_of(png_of(2, 1, 4, 0, {0, 0x3f}), 1), (bytes{51, 255}));
    EXPECT_EQ(pixels_of(png_of(2, 1, 8, 0, {0, 11, 0, 22}, {}, 1), 1), (bytes{11, 22})) << "two passes of a pixel each";
}

/// 8 x 8 pixels of one colour; `exif` may be empty.
bytes jpeg_of(J_COLOR_SPACE space, bytes const& colour, bytes const& exif = {}) {
    jpeg_compress_struct info{};
    jpeg_error_mgr errors{};
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    unsigned char* memory = nullptr;
    unsigned long size = 0;
    jpeg_mem_dest(&info, &memory, &size);
    info.image_width = info.image_height = 8;
    info.input_components = static_cast<int>(colour.size());
    info.in_color_space = space;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, 100, 1);
    jpeg_start_compress(&info, 1);
    if (!exif.empty()) jpeg_write_marker(&info, JPEG_APP0 + 1, exif.data(), static_cast<unsigned>(exif.size()));
    bytes row;
    for (int i = 0; i < 8; ++i) row = joined(row, colour);
    for (int i = 0; i < 8; ++i) {
        JSAMPROW const rows[] = {row.data()};
        jpeg_write_scanlines(&info, const_cast<JSAMPARRAY>(rows), 1);
    }
    jpeg_finish_compress(&info);
    bytes out(memory, memory + size);
    jpeg_destroy_compress(&info);
    std::free(memory);
    return out;
}

bytes pixel_of(bytes const& file, std::size_t channels) {
    return first(pixels_of(file, channels), channels);
}

TEST_F(pictures, jpeg_and_png_have_one_gray) {
    bytes const rgb = pixel_of(jpeg_of(JCS_RGB, {200, 100, 50}), 3);
    std::uint8_t const gray = pixel_of(jpeg_of(JCS_RGB, {200, 100, 50}), 1)[0];
    EXPECT_EQ(gray, pixels_of(png_of(1, 1, 8, 2, {0, rgb[0], rgb[1], rgb[2]}), 1)[0]);
    EXPECT_EQ(pixels_of(png_of(1, 1, 8, 2, {0, 200, 100, 50}), 1), bytes{124})
        << "0.299 * 200 + 0.587 * 100 + 0.114 * 50 = 124.2";
    EXPECT_EQ(pixel_of(jpeg_of(JCS_GRAYSCALE, {100}), 1), bytes{100});
    EXPECT_EQ(pixel_of(jpeg_of(JCS_GRAYSCALE, {100}), 3), (bytes{100, 100, 100}));
    EXPECT_EQ(pixel_of(jpeg_of(JCS_CMYK, {255, 100, 50, 200}), 3), (bytes{200, 78, 39})) << "inks, 255 for none";
}

TEST_F(pictures, what_is_harmless_in_a_jpeg_and_what_is_damage) {
    bytes const good = jpeg_of(JCS_GRAYSCALE, {100});
    bytes extraneous = first(good, good.size() - 2);
    extraneous = joined(joined(extraneous, {0x12, 0x34, 0x56, 0x78}), {0xff, 0xd9});
    EXPECT_EQ(pixels_of(extraneous, 1), pixels_of(good, 1));
    bytes revision = good;
    revision[11] = 9;  // of JFIF
    EXPECT_EQ(pixels_of(revision, 1), pixels_of(good, 1));
    bytes const exif{'E', 'x',  'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1,
                     1,   0x12, 0,   3,   0, 0, 0,   1,   0, 6,  0, 0, 0, 0, 0, 0};
    EXPECT_EQ(probe_picture(jpeg_of(JCS_GRAYSCALE, {100}, exif), "j").orientation, 6);
    EXPECT_EQ(probe_picture(good, "j").orientation, 1);
    EXPECT_THROW(pixels_of(first(good, good.size() - 4), 1), error);
    EXPECT_THROW(pixels_of(first(good, 10), 1), error);
}

bytes webp_of(bytes const& pixels, int width, int channels) {
    std::uint8_t* made = nullptr;
    int const height = static_cast<int>(pixels.size()) / width / channels;
    auto const encode = channels == 4 ? WebPEncodeLosslessRGBA : WebPEncodeLosslessRGB;
    std::size_t const size = encode(pixels.data(), width, height, width * channels, &made);
    bytes out(made, made + size);
    WebPFree(made);
    return out;
}

TEST_F(pictures, webp_with_and_without_alpha) {
    EXPECT_EQ(pixels_of(webp_of({10, 20, 30, 40, 50, 60}, 2, 3), 3), (bytes{10, 20, 30, 40, 50, 60}));
    EXPECT_EQ(pixels_of(webp_of({200, 100, 50}, 1, 3), 1), bytes{124});
    EXPECT_EQ(pixels_of(webp_of({200, 100, 50, 128, 1, 2, 3, 255}, 2, 4), 3), (bytes{100, 50, 25, 1, 2, 3}));
    EXPECT_EQ(probe_picture(webp_of({10, 20, 30, 40, 50, 60}, 1, 3), "w").shape, (image_shape{3, 2, 1}));
    bytes const good = webp_of(bytes(3 * 64, 9), 8, 3);
    for (std::size_t size = 0; size < good.size(); size += 5) EXPECT_THROW(pixels_of(first(good, size), 3), error) << size;
}

/// A file of chunks (RIFF), as a WebP with more than pixels is.
bytes extended_webp(std::uint8_t flags, bytes const& chunks) {
    auto const chunk = [](std::string const& type, bytes data) {
        bytes out(type.begin(), type.end());
        for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<std::uint8_t>(data.size() >> shift));
        if (data.size() % 2 == 1) data.push_back(0);
        return joined(out, data);
    };
    bytes const inside = joined(joined({'W', 'E', 'B', 'P'}, chunk("VP8X", {flags, 0, 0, 0, 0, 0, 0, 0, 0, 0})), chunks);
    return chunk("RIFF", inside);
}

TEST_F(pictures, webp_orientation_is_noted_and_of_an_animation_the_first_picture_is_taken) {
    bytes const plain = webp_of({10, 20, 30}, 1, 3);
    bytes const pixels(plain.begin() + 12, plain.end());
    bytes const exif{'E', 'X', 'I',  'F', 26, 0, 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, 0,
                     1,   1,   0x12, 0,   3,  0, 0, 0, 1,   0,   6, 0,  0, 0, 0, 0, 0};
    EXPECT_EQ(probe_picture(extended_webp(8, joined(pixels, exif)), "w").orientation, 6);
    EXPECT_EQ(probe_picture(plain, "w").orientation, 1);
    bytes frame{'A', 'N', 'M', 'F'};
    for (int shift = 0; shift < 32; shift += 8) frame.push_back(static_cast<std::uint8_t>((16 + pixels.size()) >> shift));
    bytes const place{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0};
    bytes const begin{'A', 'N', 'I', 'M', 6, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    bytes const one = joined(joined(frame, place), pixels);
    EXPECT_EQ(pixels_of(extended_webp(2, joined(begin, joined(one, one))), 3), (bytes{10, 20, 30}));
}

TEST_F(pictures, folders_of_pictures_by_class) {
    for (char const* folder : {"f", "f/rose", "f/daisy", "f/empty"}) std::filesystem::create_directory(dir.path(folder));
    picture gray{3, 2, 1, {1, 2, 3, 4, 5, 6}};
    write_png(gray, dir.path("f/rose/b.png"));
    write_png({3, 2, 1, {9, 9, 9, 9, 9, 9}}, dir.path("f/rose/a.PNG"));
    write_png(gray, dir.path("f/daisy/z.png"));
    text("f/daisy/notes.txt", "none");
    auto const from = open(dir.path("f"));
    EXPECT_EQ(from->facts().class_names, (std::vector<std::string>{"daisy", "empty", "rose"}));
    EXPECT_EQ(from->facts().shape, (image_shape{1, 2, 3}));
    EXPECT_EQ(from->notes().left_out.names, (std::vector<std::string>{dir.path("f/daisy/notes.txt")}));
    EXPECT_THAT(from->notes().words, ElementsAre(HasSubstr("no picture in empty")));
    contents const all = read_all(*from);
    EXPECT_EQ(all.labels, (std::vector<std::uint32_t>{0, 2, 2}));
    EXPECT_EQ(all.images, (bytes{1, 2, 3, 4, 5, 6, 9, 9, 9, 9, 9, 9, 1, 2, 3, 4, 5, 6}));

    contents const colour = read_all(*open(dir.path("f"), {.resize = std::pair<std::size_t, std::size_t>{4, 6}, .channels = 3}));
    EXPECT_EQ(colour.images.size(), 3u * 3 * 4 * 6);
    EXPECT_EQ(colour.images[3 * 4 * 6], 9u) << "a picture of one colour stays so";

    write_png({2, 2, 1, {1, 2, 3, 4}}, dir.path("f/rose/c.png"));
    EXPECT_THAT(refused(dir.path("f")), AllOf(HasSubstr("f/rose/c.png: is 2 x 2 pixels"), HasSubstr("give --resize 2x3")));
    write_png({3, 2, 3, bytes(18, 7)}, dir.path("f/rose/c.png"));
    EXPECT_THAT(refused(dir.path("f")), HasSubstr("c.png: is in colour, and the first picture, daisy/z.png, is gray"));
    text("f/rose/c.png", "GIF89a");
    EXPECT_THAT(refused(dir.path("f")), HasSubstr("c.png: is not PNG, JPEG or WebP"));
}

TEST_F(pictures, a_picture_of_a_giant_by_its_header_is_refused) {
    write_png({3, 2, 1, {1, 2, 3, 4, 5, 6}}, dir.path("p.png"));
    bytes file = dir.read("p.png");
    auto const claim = [&](std::uint32_t width, std::uint32_t height) {
        for (int i = 0; i < 4; ++i) {
            file[16 + i] = static_cast<std::uint8_t>(width >> (24 - 8 * i));
            file[20 + i] = static_cast<std::uint8_t>(height >> (24 - 8 * i));
        }
        auto const crc = static_cast<std::uint32_t>(::crc32(0, file.data() + 12, 17));
        for (int i = 0; i < 4; ++i) file[29 + i] = static_cast<std::uint8_t>(crc >> (24 - 8 * i));
        try {
            decode_picture(file, "p.png", 1);
        } catch (error const& e) {
            return std::string(e.what());
        }
        return std::string("read");
    };
    EXPECT_THAT(claim(60000, 60000), HasSubstr("its header tells of 60000 x 60000 pixels, and at most"));
    EXPECT_THAT(claim(10000, 10000), HasSubstr("its header tells of 10000 x 10000 pixels, which"));
    EXPECT_THAT(claim(3, 3), HasSubstr("PNG: "));
}

TEST_F(pictures, folders_are_walked_as_image_folder_does) {
    folder({"d/a/1.png", "d/b/sub/2.png", "d/b/sub/1.png", "d/b/0.png", "d/b/sub-x/1.png", "d/c/1.png"});
    auto const from = open(dir.path("d"));
    EXPECT_EQ(from->facts().class_names, (std::vector<std::string>{"a", "b", "c"}));
    contents const all = read_all(*from);
    EXPECT_EQ(all.labels, (std::vector<std::uint32_t>{0, 1, 1, 1, 1, 2}));
    EXPECT_EQ(all.images, (bytes{1, 4, 3, 2, 5, 6})) << "b, then b/sub, then b/sub-x, as paths";
    EXPECT_THAT(from->notes().words, ElementsAre(HasSubstr("3 pictures lie in folders inside the classes' (b/sub, b/sub-x)")));
}

TEST_F(pictures, folders_whose_classes_cannot_be_told_are_refused) {
    folder({"m/a/1.png", "m/b/1.png", "m/cover.png"});
    EXPECT_THAT(refused(dir.path("m")), HasSubstr("holds pictures (cover.png) and folders of pictures (a, b)"));
    folder({"s/cat/1.png", "s/dog/1.png", "s/test/1.png"});
    EXPECT_THAT(refused(dir.path("s")), AllOf(HasSubstr("next to them, cat/, dog/"), HasSubstr("train=FOLDER")));
    folder({"w/all/cat/1.png", "w/all/dog/1.png"});
    EXPECT_THAT(refused(dir.path("w")), HasSubstr("w/all if these are the classes"));
    folder({"i/cat/train/1.png", "i/dog/train/1.png"});
    EXPECT_THAT(refused(dir.path("i")), HasSubstr("cat/train: a split inside a class"));
}

TEST_F(pictures, no_split_vanishes) {
    folder({"t/train/aaa/", "t/train/b/1.png", "t/train/b/2.png", "t/Test/b/1.png"});
    auto const found = open_sources({"", dir.path("t"), ""}, {});
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].split, "test");
    EXPECT_EQ(found[1].split, "train");
    EXPECT_EQ(found[1].source->facts().class_names, (std::vector<std::string>{"aaa", "b"}));
    EXPECT_EQ(found[1].source->facts().samples, 2u);
    folder({"t/val/b/"});
    EXPECT_THAT(refused(dir.path("t")), HasSubstr("t/val: a split's folder, and holds no picture"));
}

TEST_F(pictures, damaged_ones_are_left_out_by_choice) {
    folder({"x/a/1.png", "x/a/3.png", "x/b/1.png"});
    text("x/a/0.png", "");
    text("x/a/2.jpg", "\xff\xd8\xff junk");
    EXPECT_THAT(refused(dir.path("x")), AllOf(HasSubstr("a/0.png"), HasSubstr("--skip-damaged")));
    auto const from = open(dir.path("x"), {.skip_damaged = true});
    std::vector<std::int32_t> damaged(from->facts().samples, 0);
    from->look_at({0, damaged.size()}, damaged);
    EXPECT_EQ(damaged, (std::vector<std::int32_t>{1, 0, 1, 0, 0}));
    from->leave_out(damaged);
    EXPECT_EQ(from->notes().damaged.names, (std::vector<std::string>{dir.path("x/a/0.png"), dir.path("x/a/2.jpg")}));
    EXPECT_EQ(read_all(*from).images, (bytes{1, 2, 3}));
    text("x/.hidden.png", "");
    text("x/a/photo.tiff", "");
    EXPECT_EQ(open(dir.path("x"), {.skip_damaged = true})->notes().left_out.names,
              (std::vector<std::string>{dir.path("x/.hidden.png"), dir.path("x/a/photo.tiff")}));
}

}  // namespace
}  // namespace muster
