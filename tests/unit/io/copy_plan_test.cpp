// Tests of what a copy is planned by: chunks and packs, parts of nodes, manifests, block sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "base/error.hpp"
#include "io/tree/chunk_plan.hpp"
#include "io/tree/manifest.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

file_list files_of(std::vector<std::uint64_t> const& sizes) {
    file_list list;
    list.sources = {"/from"};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        listed_file file;
        file.path = "f" + std::to_string(1000 + i);
        file.size = sizes[i];
        file.mode = 0644;
        file.mtime_ns = -5;
        list.files.push_back(file);
    }
    return list;
}

TEST(copy_plan, chunks_cover_each_file_once) {
    constexpr std::uint64_t beyond = (std::uint64_t{1} << 33) + 5;
    auto const list = files_of({0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 2'500'000, beyond});
    chunk_plan const plan(list, 1 << 20);
    EXPECT_EQ(plan.count_of(0), 1u);
    EXPECT_EQ(plan.count_of(3), 1u);
    EXPECT_EQ(plan.count_of(4), 2u);
    EXPECT_EQ(plan.count_of(5), 3u);
    std::vector<std::uint8_t> const needed(plan.chunks(), 1);
    std::vector<std::uint64_t> next(list.files.size(), 0);
    std::size_t chunks = 0;
    for (pack const& one : make_packs(list, plan, needed)) {
        std::uint64_t bytes = 0;
        for (piece const& p : one.pieces) {
            EXPECT_EQ(p.offset, next[p.file]);
            next[p.file] += p.length;
            bytes += p.length;
            ++chunks;
        }
        EXPECT_EQ(bytes, one.bytes);
        EXPECT_LE(one.bytes, 1u << 20);
    }
    EXPECT_EQ(chunks, plan.chunks());
    for (std::size_t i = 0; i < next.size(); ++i) EXPECT_EQ(next[i], list.files[i].size);
}

TEST(copy_plan, small_files_share_a_pack) {
    auto const list = files_of(std::vector<std::uint64_t>(2000, 4096));
    chunk_plan const plan(list, default_chunk_bytes);
    std::vector<std::uint8_t> needed(plan.chunks(), 1);
    needed[7] = 0;
    auto const packs = make_packs(list, plan, needed);
    EXPECT_EQ(packs.size(), 4u);
    for (pack const& one : packs) EXPECT_LE(one.pieces.size(), most_files_in_a_pack);
    EXPECT_EQ(packs.front().pieces[7].file, 8u);
}

TEST(copy_plan, parts_hold_every_file_once_and_about_the_same_bytes) {
    auto const list = files_of({5, 1 << 20, 3, 1 << 20, 0, 0, 1 << 20, 1 << 20, 7});
    for (int const parts : {1, 2, 4, 16}) {
        std::vector<std::string> seen;
        for (int part = 0; part < parts; ++part)
            for (listed_file const& file : part_of_list(list, part, parts).files) seen.push_back(file.path);
        std::vector<std::string> all;
        for (listed_file const& file : list.files) all.push_back(file.path);
        EXPECT_EQ(seen, all) << parts;
    }
    std::uint64_t first = 0;
    for (listed_file const& file : part_of_list(list, 0, 2).files) first += file.size;
    EXPECT_NEAR(static_cast<double>(first), 2 << 20, 100);
}

manifest example() {
    manifest out;
    out.sources = {"/data/tab\there"};
    listed_file folder{listed_file::kind::folder, 0, 0755, 0, 17, "a", ""};
    listed_file file{listed_file::kind::file, 0, 0640, 250, -3, "a/line\nfeed\\ \t", ""};
    listed_file link{listed_file::kind::link, 0, 0777, 0, 0, "b", "../x\ty"};
    link.mode = 0;
    out.entries = {{folder, 0, {}}, {file, 100, {1, 0xffffffffffffffff, 3}}, {link, 0, {}}};
    return out;
}

TEST(copy_manifest, is_read_as_it_was_written) {
    manifest const what = example();
    EXPECT_EQ(parse_manifest(text_of_manifest(what), "m"), what);
    EXPECT_EQ(parse_manifest(text_of_manifest({}), "m"), manifest{});
    ASSERT_NE(what.find("b"), nullptr);
    EXPECT_EQ(what.find("c"), nullptr);
}

TEST(copy_manifest, any_changed_byte_is_refused) {
    std::string const text = text_of_manifest(example());
    for (std::size_t i = 0; i < text.size(); ++i) {
        std::string changed = text;
        changed[i] = static_cast<char>(changed[i] ^ 1);
        EXPECT_THROW(parse_manifest(changed, "m"), error) << i;
        EXPECT_THROW(parse_manifest(text.substr(0, i), "m"), error) << i;
    }
    EXPECT_THROW(parse_manifest(text + "x", "m"), error);
}

TEST(copy_manifest, a_path_that_leads_out_is_refused) {
    for (std::string const path : {"../x", "/etc/x", "a//b", "a/../../b", "."}) {
        manifest bad = example();
        bad.entries.resize(1);
        bad.entries[0].file.path = path;
        EXPECT_THROW(parse_manifest(text_of_manifest(bad), "m"), error) << path;
    }
}

TEST(copy_manifest, a_newer_version_is_named) {
    try {
        parse_manifest("muster-stage manifest 2\n", "DST/manifest");
        FAIL();
    } catch (error const& e) {
        EXPECT_EQ(e.code(), errc::invalid_data);
        EXPECT_THAT(e.what(), HasSubstr("DST/manifest: line 1: the manifest has another version than 1"));
    }
}

TEST(copy_manifest, newer_entries_replace_older_ones) {
    manifest all = example();
    manifest newer;
    newer.sources = {"/other", "/data/tab\there"};
    listed_file file{listed_file::kind::file, 0, 0600, 1, 9, "b", ""};
    newer.entries = {{file, 100, {5}}};
    all.merge(newer);
    ASSERT_EQ(all.entries.size(), 3u);
    EXPECT_EQ(all.find("b")->checksums, std::vector<std::uint64_t>{5});
    EXPECT_EQ(all.sources[all.find("a")->file.source], "/data/tab\there");
    EXPECT_EQ(all.sources[all.find("b")->file.source], "/other");
}

TEST(copy_source_blocks, chunks_are_whole_stripes) {
    EXPECT_EQ(stripe_of_text("1048576\n"), 1048576u);
    EXPECT_EQ(stripe_of_text("no stripe info\n"), 0u);
    EXPECT_EQ(stripe_of_text("-1"), 0u);
    EXPECT_EQ(chunk_bytes_for(0), default_chunk_bytes);
    EXPECT_EQ(chunk_bytes_for(1 << 20), default_chunk_bytes);
    EXPECT_EQ(chunk_bytes_for(std::uint64_t{16} << 20), std::uint64_t{16} << 20);
    EXPECT_EQ(chunk_bytes_for(3 << 20), std::uint64_t{6} << 20);
    EXPECT_EQ(chunk_bytes_for(std::uint64_t{1} << 40), default_chunk_bytes);
    EXPECT_EQ(find_source_blocks("/proc", {}), 0u);
}

}  // namespace
}  // namespace muster
