#include "io/loader/loader.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>

#include "base/unique_fd.hpp"
#include "io/convert/convert.hpp"
#include "pmix/wait_page.hpp"
#include "test_files.hpp"

namespace muster {
namespace {

using namespace test;
using testing::HasSubstr;

static_assert(std::input_iterator<loader::iterator>);

constexpr std::size_t samples = 1003;
constexpr std::size_t image_bytes = 5 * 7;

struct setting {
    memory_mode memory;
    std::size_t prefetch;
    std::size_t workers = 1;
    char const* file = "contiguous.h5";
};
constexpr shuffle_window small_window{7, 5};

class loader_of : public testing::TestWithParam<setting> {
  protected:
    static void SetUpTestSuite() {
        dir = new scratch;
        make("contiguous.h5", 0);
        make("chunked.h5", 100);
        make("deflated.h5", 100, 1);
    }
    static void TearDownTestSuite() {
        delete dir;
        dir = nullptr;
    }
    static void make(std::string const& name, std::size_t chunk, unsigned gzip_level = 0) {
        convert_request request;
        request.writer.durable = false;
        request.splits = {{"train", dir->write("i", idx_images(samples, 5, 7)), dir->write("l", idx_labels(samples))}};
        request.output = dir->path(name);
        request.chunk_samples = chunk;
        request.gzip_level = gzip_level;
        convert(request);
    }
    static shuffle_window window() { return GetParam().memory == memory_mode::windowed ? small_window : shuffle_window{}; }
    static sampler order(tail_rule tail = tail_rule::exact) {
        spread_rule const spread = GetParam().memory == memory_mode::shard ? spread_rule::sharded : spread_rule::global;
        return sampler(samples, {.seed = 9, .tail = tail, .spread = spread, .window = window()});
    }
    static loader make_loader(sampler const& from, std::size_t batch_size, int rank = 0, int world = 1,
                              std::string wait_page = "") {
        return loader(dataset::open(dir->path(GetParam().file)), from,
                      {.batch = batch_size,
                       .rank = rank,
                       .world = world,
                       .memory = GetParam().memory,
                       .prefetch = GetParam().prefetch,
                       .workers = GetParam().workers,
                       .readers = 3,
                       .wait_page = std::move(wait_page)});
    }
    static void expect_contents(batch const& b) {
        ASSERT_EQ(b.images.size(), b.count * image_bytes);
        ASSERT_EQ(b.labels.size(), b.count);
        ASSERT_EQ(b.samples.size(), b.count);
        for (std::size_t i = 0; i < b.count; ++i) {
            ASSERT_EQ(b.labels[i], label(b.samples[i]));
            for (std::size_t k = 0; k < image_bytes; ++k)
                ASSERT_EQ(b.images[i * image_bytes + k], pixel(b.samples[i] * image_bytes + k));
        }
    }
    static scratch* dir;
};
scratch* loader_of::dir = nullptr;

TEST_P(loader_of, batches_are_the_samplers_samples_with_their_contents) {
    sampler const s = order();
    for (std::size_t const size : {1u, 64u, 1003u, 5000u}) {
        loader l = make_loader(s, size);
        for (std::uint64_t const epoch : {0u, 1u}) {
            std::vector<std::uint64_t> seen;
            auto range = l.epoch(epoch);
            EXPECT_EQ(range.size(), (samples + size - 1) / size);
            for (batch const& b : range) {
                expect_contents(b);
                EXPECT_EQ(b.first_sample, seen.size());
                EXPECT_EQ(b.global_count, b.count);
                seen.insert(seen.end(), b.samples.begin(), b.samples.end());
                EXPECT_EQ(b.resume_at, seen.size());
            }
            EXPECT_EQ(seen, s.indices(epoch, 0, 1));
        }
    }
}

TEST_P(loader_of, all_ranks_make_the_same_steps_and_cover_every_sample_once) {
    sampler const s = order();
    for (int const world : {2, 3, 7})
        for (std::size_t const size : {1u, 10u, 167u, 200u}) {
            std::vector<int> times(samples, 0);
            std::vector<std::size_t> in_step;
            std::vector<std::size_t> told;
            for (int rank = 0; rank < world; ++rank) {
                loader l = make_loader(s, size, rank, world);
                std::size_t step = 0;
                for (batch const& b : l.epoch(4)) {
                    expect_contents(b);
                    for (std::uint64_t const i : b.samples) ++times[i];
                    if (in_step.size() <= step) {
                        ASSERT_EQ(rank, 0);
                        in_step.push_back(0);
                        told.push_back(b.global_count);
                    }
                    in_step[step] += b.count;
                    ASSERT_EQ(told[step], b.global_count);
                    ++step;
                }
                ASSERT_EQ(step, in_step.size());
            }
            EXPECT_EQ(in_step, told);
            EXPECT_EQ(std::count(times.begin(), times.end(), 1), static_cast<std::ptrdiff_t>(samples))
                << world << " ranks, batch " << size;
        }
}

TEST_P(loader_of, more_ranks_than_samples_get_empty_batches) {
    convert_request request;
    request.writer.durable = false;
    request.splits = {{"train", dir->write("i3", idx_images(3, 5, 7)), dir->write("l3", idx_labels(3))}};
    request.output = dir->path("three.h5");
    request.writer.replace = true;
    convert(request);
    for (auto const tail : {tail_rule::exact, tail_rule::pad, tail_rule::drop}) {
        sampler const s(3, {.tail = tail, .spread = order().options().spread, .window = window()});
        for (int rank = 0; rank < 5; ++rank) {
            loader l(dataset::open(request.output), s,
                     {.batch = 4, .rank = rank, .world = 5, .memory = GetParam().memory, .prefetch = GetParam().prefetch});
            std::size_t steps = 0;
            for (batch const& b : l.epoch(0)) {
                expect_contents(b);
                EXPECT_EQ(b.count, tail == tail_rule::pad || rank < 3 ? 1u : 0u);
                EXPECT_EQ(b.global_count, tail == tail_rule::pad ? 5u : 3u);
                ++steps;
            }
            EXPECT_EQ(steps, tail == tail_rule::drop ? 0u : 1u);
        }
    }
}

TEST_P(loader_of, an_epoch_may_be_left_and_resumed) {
    sampler const s = order();
    loader l = make_loader(s, 50);
    std::vector<std::uint64_t> seen;
    std::uint64_t at = 0;
    for (batch const& b : l.epoch(7)) {
        seen.insert(seen.end(), b.samples.begin(), b.samples.end());
        at = b.resume_at;
        if (seen.size() >= 300) break;
    }
    l.epoch(8);  // started and never looked at
    for (batch const& b : l.epoch(7, at)) {
        expect_contents(b);
        seen.insert(seen.end(), b.samples.begin(), b.samples.end());
    }
    EXPECT_EQ(seen, s.indices(7, 0, 1));
}

TEST_P(loader_of, what_was_chosen_is_told) {
    loader l = make_loader(order(), 64);
    EXPECT_EQ(l.options().memory, GetParam().memory);
    EXPECT_EQ(l.options().prefetch, GetParam().prefetch);
    std::size_t const pixels = GetParam().memory == memory_mode::mapped     ? 0
                               : GetParam().memory == memory_mode::windowed ? 2 * 5 * 8192
                                                                            : samples * image_bytes;
    EXPECT_EQ(l.held_bytes(), samples + pixels);
    EXPECT_THAT(l.why(), HasSubstr("memory mode " + std::string(to_string(GetParam().memory)) + " (as asked for"));
}

TEST_P(loader_of, moves_between_epochs) {
    sampler const s = order();
    loader first_place = make_loader(s, 100);
    for (batch const& b : first_place.epoch(0)) ASSERT_GT(b.count, 0u);
    loader l(std::move(first_place));
    std::vector<std::uint64_t> seen;
    for (batch const& b : l.epoch(1)) seen.insert(seen.end(), b.samples.begin(), b.samples.end());
    EXPECT_EQ(seen, s.indices(1, 0, 1));
}

TEST_P(loader_of, the_report_counts_steps_and_what_they_held) {
    loader l = make_loader(order(), 100);
    for (int epoch = 0; epoch < 2; ++epoch) {
        for (batch const& b : l.epoch(static_cast<std::uint64_t>(epoch))) ASSERT_GT(b.count, 0u);
        loader_report const spent = l.report();
        EXPECT_EQ(spent.steps, 11u);
        EXPECT_EQ(spent.samples, samples);
        EXPECT_EQ(spent.bytes, samples * image_bytes);
        EXPECT_GT(spent.waited_s, 0);
        EXPECT_GE(spent.total_s, spent.waited_s);
    }
    l.epoch(5);
    EXPECT_EQ(l.report(), loader_report{}) << "of the epoch begun last";
}

TEST_P(loader_of, waits_for_batches_are_counted_for_who_watches_the_rank) {
    unique_fd const file(::memfd_create("page", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(file.get(), wait_page::bytes), 0);
    void* const memory = ::mmap(nullptr, wait_page::bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    ASSERT_NE(memory, MAP_FAILED);
    auto& page = *static_cast<wait_page*>(memory);
    page.layout = wait_page::known_layout;
    loader l = make_loader(order(), 100, 0, 1, fmt::format("/proc/self/fd/{}", file.get()));
    for (batch const& b : l.epoch(0)) ASSERT_GT(b.count, 0u);
    EXPECT_EQ(page.batches, 11u);
    EXPECT_GT(page.data_ns, 0u);
    EXPECT_LE(static_cast<double>(page.data_ns), l.report().waited_s * 1e9) << "the end of the epoch is no batch";
    ::munmap(memory, wait_page::bytes);
}

TEST(loader_report, utilisation_is_the_time_that_was_not_waited) {
    EXPECT_DOUBLE_EQ((loader_report{.waited_s = 1, .total_s = 4}).utilisation(), 0.75);
    EXPECT_DOUBLE_EQ(loader_report{}.utilisation(), 1);
}

TEST_P(loader_of, transformed_batches_are_the_transformed_samples) {
    transform_options const how{
        .mean = {0.3f}, .deviation = {0.2f}, .crop_height = 4, .crop_width = 5, .pad = 1, .random = true, .flip = true};
    sampler const s = order();
    loader l(dataset::open(dir->path("contiguous.h5")), s,
             {.batch = 64,
              .memory = GetParam().memory,
              .prefetch = GetParam().prefetch,
              .workers = GetParam().workers,
              .transform = how});
    EXPECT_EQ(l.shape(), (image_shape{1, 4, 5}));
    image_transform const expected({1, 5, 7}, how, s.options().seed);
    std::size_t seen = 0;
    for (batch const& b : l.epoch(6)) {
        ASSERT_TRUE(b.images.empty());
        ASSERT_EQ(b.values.size(), b.count * 20);
        for (std::size_t i = 0; i < b.count; ++i) {
            std::vector<std::uint8_t> image(image_bytes);
            for (std::size_t k = 0; k < image_bytes; ++k) image[k] = pixel(b.samples[i] * image_bytes + k);
            std::vector<float> values(20);
            expected.apply(6, b.samples[i], image.data(), values.data());
            ASSERT_TRUE(std::equal(values.begin(), values.end(), b.values.begin() + static_cast<std::ptrdiff_t>(i * 20)));
            ASSERT_EQ(b.labels[i], label(b.samples[i]));
        }
        seen += b.count;
    }
    EXPECT_EQ(seen, samples);
}

INSTANTIATE_TEST_SUITE_P(modes, loader_of,
                         testing::Values(setting{memory_mode::whole, 0}, setting{memory_mode::whole, 1},
                                         setting{memory_mode::whole, 4}, setting{memory_mode::mapped, 0},
                                         setting{memory_mode::mapped, 2}, setting{memory_mode::shard, 0},
                                         setting{memory_mode::shard, 3}, setting{memory_mode::windowed, 0},
                                         setting{memory_mode::windowed, 3}, setting{memory_mode::windowed, 0, 1, "chunked.h5"},
                                         setting{memory_mode::windowed, 3, 1, "deflated.h5"}, setting{memory_mode::whole, 5, 3},
                                         setting{memory_mode::whole, 0, 1, "deflated.h5"}),
                         [](auto const& instance) {
                             return std::string(to_string(instance.param.memory)) + "_" +
                                    std::to_string(instance.param.prefetch) + "_" + std::to_string(instance.param.workers) + "_" +
                                    std::string(instance.param.file, std::strcspn(instance.param.file, "."));
                         });

class loader_choice : public loader_of {};

TEST_P(loader_choice, contradictions_are_refused) {
    dataset const contiguous = dataset::open(dir->path("contiguous.h5"));
    dataset const chunked = dataset::open(dir->path("chunked.h5"));
    sampler const s(samples);
    auto const message = [](dataset const& from, sampler const& by, loader_options const& options) -> std::string {
        try {
            loader(from, by, options);
        } catch (error const& e) {
            return e.what();
        }
        return "";
    };
    EXPECT_THAT(message(contiguous, s, {.batch = 0}), HasSubstr("batches of 0 samples"));
    EXPECT_THAT(message(contiguous, s, {.rank = 2, .world = 2}), HasSubstr("rank 2 of 2"));
    EXPECT_THAT(message(contiguous, sampler(5), {}), HasSubstr("the sampler is for 5 samples"));
    EXPECT_THAT(message(contiguous, s, {.memory = memory_mode::shard}), HasSubstr("spread=\"sharded\""));
    EXPECT_THAT(message(chunked, s, {.memory = memory_mode::mapped}), HasSubstr("chunked.h5: /train/images is chunked"));
    EXPECT_THAT(message(chunked, s, {.local_size = 1'000'000'000}), HasSubstr("do not fit 1000000000 ranks of this node"));
    EXPECT_EQ(message(chunked, s, {.memory = memory_mode::whole}), "");
    sampler const windowed(samples, {.window = small_window});
    EXPECT_THAT(message(contiguous, s, {.memory = memory_mode::windowed}), HasSubstr("a sampler without a window"));
    EXPECT_EQ(message(chunked, windowed, {.local_size = 1'000'000'000}), "");
    EXPECT_THAT(message(contiguous, s, {.memory = memory_mode::shared}), HasSubstr("without a communicator"));
    EXPECT_THAT(message(contiguous, s, {.workers = 0}), HasSubstr("0 workers"));
    EXPECT_THAT(message(contiguous, s, {.local_size = 2, .local_rank = 2}), HasSubstr("2 of 2 on this node"));
    EXPECT_THAT(message(contiguous, s, {.transform = transform_options{.mean = {1, 2, 3}}}),
                HasSubstr("3 means for images of 1 channels"));
}

TEST_P(loader_choice, the_choice_follows_sampler_and_memory) {
    dataset const from = dataset::open(dir->path("contiguous.h5"));
    EXPECT_EQ(loader(from, sampler(samples), {}).options().memory, memory_mode::whole);
    EXPECT_EQ(loader(from, sampler(samples), {.local_size = 1'000'000'000}).options().memory, memory_mode::mapped);
    EXPECT_EQ(loader(from, sampler(samples, {.spread = spread_rule::sharded}), {}).options().memory, memory_mode::shard);
    loader const windowed(from, sampler(samples, {.window = small_window}), {.local_size = 1'000'000'000});
    EXPECT_EQ(windowed.options().memory, memory_mode::windowed);
    EXPECT_THAT(windowed.why(), HasSubstr("memory mode windowed (they do not fit half of the memory"));
    for (char const* stored : {"chunked.h5", "deflated.h5"})
        EXPECT_EQ(
            loader(dataset::open(dir->path(stored)), sampler(samples, {.window = small_window}), {.local_size = 1'000'000'000})
                .options()
                .memory,
            memory_mode::windowed);
    EXPECT_EQ(*loader(from, sampler(samples), {}).options().prefetch, 0u) << "a small batch is not worth a thread";
}

TEST_P(loader_choice, what_is_delivered_does_not_depend_on_the_memory_mode) {
    dataset const from = dataset::open(dir->path("contiguous.h5"));
    for (auto const spread : {spread_rule::global, spread_rule::by_node}) {
        sampler const s(samples, {.spread = spread, .window = small_window});
        std::vector<std::vector<std::uint64_t>> seen;
        for (memory_mode const memory : {memory_mode::whole, memory_mode::windowed}) {
            loader l(from, s, {.batch = 33, .rank = 3, .world = 5, .local_size = 2, .local_rank = 1, .memory = memory});
            seen.emplace_back();
            for (batch const& b : l.epoch(2)) {
                expect_contents(b);
                seen.back().insert(seen.back().end(), b.samples.begin(), b.samples.end());
            }
        }
        EXPECT_EQ(seen[0], seen[1]);
    }
}

TEST_P(loader_choice, a_file_that_is_cut_short_meanwhile_is_told) {
    std::string const path = dir->path("shrinks.h5");
    std::filesystem::copy_file(dir->path("contiguous.h5"), path, std::filesystem::copy_options::overwrite_existing);
    dataset const from = dataset::open(path);
    for (std::size_t const prefetch : {0u, 3u}) {
        loader l(from, sampler(samples, {.window = small_window}), {.memory = memory_mode::windowed, .prefetch = prefetch});
        std::filesystem::resize_file(path, *from.info().image_offset + 100);
        try {
            for (batch const& b : l.epoch(0)) ASSERT_GT(b.count, 0u);
            ADD_FAILURE() << "all of a file that is not there";
        } catch (error const& problem) {
            EXPECT_EQ(problem.code(), errc::invalid_data);
            EXPECT_THAT(problem.what(), HasSubstr("shrinks.h5: ends at"));
        }
        EXPECT_THROW(loader(from, sampler(samples, {.window = small_window}), {.memory = memory_mode::windowed}), error);
        std::filesystem::copy_file(dir->path("contiguous.h5"), path, std::filesystem::copy_options::overwrite_existing);
        for (batch const& b : l.epoch(1)) expect_contents(b);  // and it goes on
    }
}

INSTANTIATE_TEST_SUITE_P(once, loader_choice, testing::Values(setting{memory_mode::automatic, 0}));

}  // namespace
}  // namespace muster
