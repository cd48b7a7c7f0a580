#include "io/loader/image_transform.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.hpp"
#include "test_files.hpp"

namespace muster {
namespace {

using testing::HasSubstr;
constexpr image_shape shape{3, 9, 41};

std::vector<std::uint8_t> image_of(image_shape const& of) {
    std::vector<std::uint8_t> image(of.elements());
    for (std::size_t i = 0; i < image.size(); ++i) image[i] = test::pixel(i);
    return image;
}

/// Where a crop of the result may have begun, given the image with its padding, number by number; -1 where it is none.
struct place {
    std::size_t top, left;
    bool mirrored;
    auto operator<=>(place const&) const = default;
};
bool is_at(place const& at, transform_options const& how, std::vector<std::uint8_t> const& image,
           std::vector<float> const& values, image_shape const& out) {
    for (std::size_t c = 0; c < out.channels; ++c)
        for (std::size_t y = 0; y < out.height; ++y)
            for (std::size_t x = 0; x < out.width; ++x) {
                std::size_t const row = at.top + y, column = at.left + (at.mirrored ? out.width - 1 - x : x);
                bool const inside =
                    row >= how.pad && row < how.pad + shape.height && column >= how.pad && column < how.pad + shape.width;
                auto const scale = static_cast<float>(1 / (255 * static_cast<double>(how.deviation[c])));
                auto const shift = static_cast<float>(-static_cast<double>(how.mean[c]) / static_cast<double>(how.deviation[c]));
                float const byte = inside ? image[(c * shape.height + row - how.pad) * shape.width + column - how.pad] : 0;
                float const expected = inside ? byte * scale + shift : shift;
                if (values[(c * out.height + y) * out.width + x] != expected) return false;
            }
    return true;
}

transform_options usual() {
    return {.mean = {0.1f, 0.5f, 0.7f},
            .deviation = {0.2f, 0.25f, 1},
            .crop_height = 7,
            .crop_width = 35,
            .pad = 2,
            .random = true,
            .flip = true};
}

TEST(image_transform, is_a_crop_somewhere_mirrored_or_not_and_the_same_on_every_processor) {
    image_transform const t(shape, usual(), 12);
    auto const image = image_of(shape);
    std::set<place> places;
    int mirrored = 0;
    constexpr int samples = 1500;
    for (std::uint64_t sample = 0; sample < samples; ++sample) {
        std::vector<float> values(t.values());
        t.apply(3, sample, image.data(), values.data());
        for (simd const level : available_simd()) {
            std::vector<float> others(t.values());
            t.apply(3, sample, image.data(), others.data(), level);
            ASSERT_EQ(values, others) << to_string(level);
        }
        int found = 0;
        for (std::size_t top = 0; top <= 6; ++top)
            for (std::size_t left = 0; left <= 10; ++left)
                for (bool const flip : {false, true})
                    if (is_at({top, left, flip}, usual(), image, values, t.out())) {
                        places.insert({top, left, flip});
                        mirrored += flip ? 1 : 0;
                        ++found;
                    }
        ASSERT_EQ(found, 1);
    }
    EXPECT_EQ(places.size(), 7u * 11 * 2) << "each place comes";
    EXPECT_NEAR(mirrored, samples / 2, 100);
}

TEST(image_transform, chance_depends_on_seed_epoch_and_sample_alone) {
    auto const image = image_of(shape);
    auto const of = [&](std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample) {
        image_transform const t(shape, usual(), seed);
        std::vector<float> values(t.values());
        t.apply(epoch, sample, image.data(), values.data());
        return values;
    };
    auto const differ = [&](std::uint64_t seed, std::uint64_t epoch) {
        int count = 0;
        for (std::uint64_t sample = 0; sample < 20; ++sample) count += of(seed, epoch, sample) != of(1, 0, sample) ? 1 : 0;
        return count;
    };
    EXPECT_EQ(differ(1, 0), 0);
    EXPECT_GT(differ(1, 1), 15);
    EXPECT_GT(differ(2, 0), 15);
}

TEST(image_transform, without_chance_is_the_middle_and_without_anything_the_bytes_by_255) {
    auto const image = image_of(shape);
    transform_options how{.mean = {0, 0, 0}, .deviation = {1, 1, 1}, .crop_height = 4, .crop_width = 8};
    image_transform const middle(shape, how, 1);
    std::vector<float> values(middle.values());
    middle.apply(0, 0, image.data(), values.data());
    EXPECT_TRUE(is_at({2, 16, false}, how, image, values, middle.out()));
    image_transform const plain(shape, {}, 1);
    ASSERT_EQ(plain.out(), shape);
    values.resize(plain.values());
    plain.apply(0, 0, image.data(), values.data());
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_FLOAT_EQ(values[i], static_cast<float>(image[i]) / 255);
}

TEST(image_transform, what_does_not_fit_the_images_is_refused) {
    auto const refusal = [](transform_options const& how) -> std::string {
        try {
            image_transform(shape, how, 0);
        } catch (error const& problem) {
            return problem.what();
        }
        return "";
    };
    EXPECT_THAT(refusal({.mean = {1}}), HasSubstr("1 means for images of 3 channels"));
    EXPECT_THAT(refusal({.deviation = {1, 0, 1}}), HasSubstr("the deviation of channel 1 is 0"));
    EXPECT_THAT(refusal({.crop_height = 10}), HasSubstr("a crop of 10 rows from images of 9"));
    EXPECT_THAT(refusal({.crop_width = 46, .pad = 2}), HasSubstr("give at most 45"));
    EXPECT_EQ(refusal({.crop_width = 45, .pad = 2}), "");
}

}  // namespace
}  // namespace muster
