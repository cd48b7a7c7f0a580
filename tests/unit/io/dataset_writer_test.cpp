// The writer: types, compression, what it finds of a writer that was killed, and that two do not meet.
#include "io/dataset/dataset_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "io/dataset/dataset.hpp"
#include "io/dataset/write_journal.hpp"
#include "test_files.hpp"

namespace muster {
namespace {

using namespace test;
using testing::AllOf;
using testing::HasSubstr;

split_plan plan_of(std::string const& split, std::size_t samples, element_type type = element_type::u8,
                   std::size_t classes = 10) {
    split_plan plan;
    plan.split = split;
    plan.samples = samples;
    plan.shape = {1, 100, 1024};
    plan.type = type;
    plan.classes = classes;
    return plan;
}

class dataset_writer_file : public testing::Test {
  protected:
    bytes images_of(split_plan const& plan, hyperslab rows) const {
        bytes all(rows.count * plan.image_bytes());
        // Tests are not optimised, and these are megabytes: no call for each byte.
        std::size_t number = rows.first * plan.image_bytes();
        for (std::uint8_t *at = all.data(), *const end = at + all.size(); at < end; ++at, ++number)
            *at = static_cast<std::uint8_t>((number * 2654435761u) >> 13);
        return all;
    }
    static bytes labels_of(split_plan const& plan, hyperslab rows) {
        bytes all;
        for (std::size_t i = rows.first; i < rows.end(); ++i) {
            std::size_t const label = i * 7919 % (plan.targets ? 1000 : plan.classes);
            for (std::size_t b = 0; b < plan.label_bytes(); ++b) all.push_back(static_cast<std::uint8_t>(label >> (8 * b)));
        }
        return all;
    }
    /// Writes blocks of the share until `most` are done.
    std::size_t write_some(dataset_writer& writer, std::size_t most) {
        std::size_t done = 0;
        for (std::size_t split = 0; split < writer.plans().size(); ++split) {
            split_plan const& plan = writer.plans()[split];
            std::size_t const block = plan.block_samples();
            for (hyperslab const& run : writer.share(split))
                for (std::size_t at = run.first; at < run.end() && done < most; at += block, ++done) {
                    hyperslab const rows = intersect({at, block}, run);
                    writer.write(split, rows, images_of(plan, rows), !plan.label_type() ? bytes() : labels_of(plan, rows));
                }
        }
        return done;
    }
    void write_all(std::vector<split_plan> const& plans, writer_options const& options = {.replace = true, .durable = false}) {
        dataset_writer writer(dir.path("out.h5"), plans, options);
        write_some(writer, SIZE_MAX);
        writer.close();
    }
    void expect_contents(split_plan const& plan) const {
        dataset const made = dataset::open(dir.path("out.h5"), plan.split);
        made.verify();
        EXPECT_EQ(made.info().type, plan.type);
        EXPECT_EQ(made.label_bytes(), plan.label_bytes());
        bytes images(made.size() * made.image_bytes());
        bytes labels(made.size() * made.label_bytes());
        made.read(0, made.size(), images, labels);
        EXPECT_EQ(images, images_of(plan, {0, plan.samples}));
        EXPECT_EQ(labels, !plan.label_type() ? bytes() : labels_of(plan, {0, plan.samples}));
    }
    /// A process that writes so many blocks and dies as if it were killed.
    void die_after(std::vector<split_plan> const& plans, writer_options const& options, std::size_t blocks) {
        pid_t const child = ::fork();
        if (child == 0) {
            dataset_writer writer(dir.path("out.h5"), plans, options);
            write_some(writer, blocks);
            ::_exit(0);  // no destructor runs
        }
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_EQ(status, 0);
    }
    scratch dir;
};

TEST_F(dataset_writer_file, every_type_and_number_of_classes) {
    for (element_type const type : {element_type::u8, element_type::i16, element_type::f32, element_type::f64})
        for (std::size_t const classes : {0u, 10u, 1000u, 70000u}) {
            // Several blocks where the labels are bytes; the wider ones differ in the labels alone.
            split_plan const plan = plan_of("train", classes <= 10 ? 23 : 2, type, classes);
            write_all({plan});
            expect_contents(plan);
            EXPECT_EQ(dataset::open(dir.path("out.h5")).info().format_version,
                      type == element_type::u8 && classes == 10 ? 1u : 2u);
        }
}

TEST_F(dataset_writer_file, rows_and_targets) {
    for (unsigned const gzip_level : {0u, 1u}) {
        split_plan plan = plan_of("train", 23, element_type::f32, 0);
        plan.shape = {1, 1, plan.shape.elements(), true};
        plan.targets = true;
        plan.gzip_level = gzip_level;
        write_all({plan});
        expect_contents(plan);
        dataset const made = dataset::open(dir.path("out.h5"));
        EXPECT_EQ(made.info().format_version, 3u);
        EXPECT_EQ(made.info().label_type, element_type::f32);
        EXPECT_EQ(made.classes(), 0u);
        made.verify();
        hdf5::place const at{dir.path("out.h5"), "/train/images"};
        hdf5::file const file = hdf5::open_file(at, hdf5::file_access(at, 1, nullptr));
        EXPECT_EQ(hdf5::form_of(at, hdf5::open_dataset_at(at, file)).extent, (std::vector<std::uint64_t>{23, plan.shape.width}));
    }
}

TEST_F(dataset_writer_file, the_range_of_values_is_told) {
    split_plan const plan = plan_of("train", 23);
    write_all({plan});
    EXPECT_EQ(dataset::open(dir.path("out.h5")).info().values, (value_range{0, 255, true}));
}

TEST_F(dataset_writer_file, compressed_chunks_hold_the_same) {
    split_plan plan = plan_of("train", 23);
    plan.gzip_level = 1;
    split_plan other = plan_of("test", 5, element_type::f32, 0);
    other.gzip_level = 1;
    other.chunk_samples = 2;
    write_all({plan, other});
    expect_contents(plan);
    expect_contents(other);
    dataset_info const info = dataset::open(dir.path("out.h5"), "test").info();
    EXPECT_TRUE(info.compressed);
    EXPECT_EQ(info.chunk_samples, 2u);
    EXPECT_FALSE(info.image_offset);
    EXPECT_EQ(dir.entries(), 1u) << "no spool, no journal";
}

TEST_F(dataset_writer_file, a_killed_writer_is_taken_up_and_gives_the_same_bytes) {
    for (unsigned const gzip_level : {0u, 1u})
        for (std::size_t const chunk : {std::size_t{0}, std::size_t{4}}) {
            std::vector<split_plan> plans{plan_of("train", 18, element_type::u16), plan_of("test", 7, element_type::u16)};
            for (split_plan& plan : plans) {
                plan.gzip_level = gzip_level;
                plan.chunk_samples = chunk;
            }
            writer_options const options{.replace = true, .durable = false, .identity = "these"};
            write_all(plans, options);
            bytes const whole = dir.read("out.h5");
            std::filesystem::remove(dir.path("out.h5"));
            for (std::size_t const blocks : {1u, 4u, 1000u}) {
                std::filesystem::remove(dir.path("out.h5"));
                die_after(plans, options, blocks);
                EXPECT_FALSE(std::filesystem::exists(dir.path("out.h5"))) << "nothing under the final name";
                dataset_writer writer(dir.path("out.h5"), plans, options);
                EXPECT_GE(writer.found_bytes(), plans[0].image_bytes() * std::min<std::size_t>(blocks, 6))
                    << "a sample or more a block";
                write_some(writer, SIZE_MAX);
                writer.close();
                EXPECT_EQ(dir.read("out.h5"), whole) << blocks << " blocks, gzip " << gzip_level << ", chunk " << chunk;
                EXPECT_EQ(dir.entries(), 1u);
            }
            std::filesystem::remove(dir.path("out.h5"));
        }
}

TEST_F(dataset_writer_file, what_was_damaged_meanwhile_is_written_again) {
    std::vector<split_plan> const plans{plan_of("train", 53)};
    writer_options const options{.replace = true, .durable = false, .identity = "these"};
    write_all(plans, options);
    bytes const whole = dir.read("out.h5");
    die_after(plans, options, 6);
    {
        std::fstream file(dir.path("out.h5.partial"), std::ios::binary | std::ios::in | std::ios::out);
        file.seekp(100);  // HDF5's own
        file.write("damage", 6);
        file.seekp(1 << 20);  // the first block
        file.write("damage", 6);
    }
    dataset_writer writer(dir.path("out.h5"), plans, options);
    EXPECT_EQ(writer.share(0), (std::vector<hyperslab>{{0, writer.block_samples()}})) << "the damaged block alone";
    write_some(writer, SIZE_MAX);
    writer.close();
    EXPECT_EQ(dir.read("out.h5"), whole);
}

TEST_F(dataset_writer_file, another_conversion_begins_anew) {
    std::vector<split_plan> const plans{plan_of("train", 53)};
    die_after(plans, {.identity = "these"}, 3);
    EXPECT_EQ(dataset_writer(dir.path("out.h5"), plans, {.identity = "others"}).found_bytes(), 0u);
    EXPECT_EQ(dir.entries(), 0u) << "a writer destroyed before close() leaves nothing";
    die_after(plans, {.identity = "these"}, 3);
    EXPECT_EQ(dataset_writer(dir.path("out.h5"), {plan_of("train", 54)}, {.identity = "these"}).found_bytes(), 0u);
    die_after(plans, {.identity = "these"}, 3);
    EXPECT_EQ(dataset_writer(dir.path("out.h5"), plans, {.identity = "these", .restart = true}).found_bytes(), 0u);
}

TEST_F(dataset_writer_file, a_second_writer_is_refused_by_name) {
    std::vector<split_plan> const plans{plan_of("train", 53)};
    dataset_writer first(dir.path("out.h5"), plans, {.durable = false});
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    try {
        dataset_writer second(dir.path("out.h5"), plans, {.replace = true, .durable = false});
        FAIL();
    } catch (error const& e) {
        EXPECT_EQ(e.code(), errc::unavailable);
        EXPECT_THAT(e.what(), AllOf(HasSubstr("out.h5: is being written by another conversion (host " + std::string(host)),
                                    HasSubstr("process " + std::to_string(::getpid()))));
    }
    write_some(first, SIZE_MAX);
    first.close();
    dataset::open(dir.path("out.h5")).verify();
}

TEST_F(dataset_writer_file, a_record_that_was_torn_does_not_count) {
    write_journal journal = write_journal::lock(dir.path("out.h5"));
    journal.begin("id");
    journal.put(3, {1, 2, 3});
    EXPECT_EQ(journal.get(3), (block_record{1, 2, 3}));
    EXPECT_FALSE(journal.get(2)) << "never written";
    EXPECT_FALSE(journal.get(4));
    std::fstream file(write_journal::path_of(dir.path("out.h5")), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(4096 + 3 * 32 + 8);
    file.put(9);
    file.close();
    EXPECT_FALSE(journal.get(3));
    EXPECT_EQ(journal.identity(), "id");
}

}  // namespace
}  // namespace muster
