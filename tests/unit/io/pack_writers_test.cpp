// Tests of packs that arrive: whole ones are written, a byte that changed on its way is named with file, chunk and offset.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "io/copy/pack_io.hpp"
#include "test_files.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t chunk_bytes = 1000;

/// A source of one large and two small files, a target, and the packs as a reader sends them.
class arriving_copy {
  public:
    arriving_copy() {
        std::filesystem::create_directory(dir_.path("src"));
        for (auto const& [name, size] : {std::pair{"src/large", 2500}, {"src/small", 10}, {"src/none", 0}}) {
            test::bytes contents(static_cast<std::size_t>(size));
            for (std::size_t i = 0; i < contents.size(); ++i) contents[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
            dir_.write(name, contents);
        }
        std::string const sources[] = {dir_.path("src")};
        list_ = list_files(sources, 1);
        plan_ = chunk_plan(list_, chunk_bytes);
        target_.emplace(dir_.path("dst"), std::string(state_folder_name), false);
        have_ = target_->find(list_, plan_, copy_check::fast, 1);
        target_->begin(list_, plan_, have_);
        packs_ = make_packs(list_, plan_, have_.needed);
        pack_reader reader(list_, packs_, 0, 1, 1, read_);
        for (std::size_t i = 0; i < packs_.size(); ++i) {
            auto const bytes = reader.next();
            sent_.emplace_back(bytes.begin(), bytes.end());
        }
    }

    std::size_t pack_of(std::string const& path, std::uint64_t offset) const {
        for (std::size_t i = 0; i < packs_.size(); ++i)
            for (piece const& one : packs_[i].pieces)
                if (list_.files[one.file].path == path && one.offset == offset) return i;
        return packs_.size();
    }
    std::vector<std::byte>& bytes_of(std::size_t pack) { return sent_[pack]; }

    /// Hands all packs to the writers, in slices of `slice` bytes.
    void arrive(std::size_t slice) {
        exchange_work const work{list_, plan_, packs_, *target_, have_, 2, written_, read_, {}};
        pack_writers writers(work);
        for (std::size_t i = 0; i < packs_.size(); ++i)
            for (std::size_t at = 0; at < sent_[i].size(); at += slice)
                writers.put(
                    {i, std::span<std::byte const>(sent_[i]).subspan(at, std::min(slice, sent_[i].size() - at)), nullptr});
        writers.finish();
        target_->finish(list_, plan_, have_, false);
    }

    test::bytes source(std::string const& name) const { return dir_.read("src/" + name); }
    test::bytes copied(std::string const& name) const { return dir_.read("dst/src/" + name); }
    std::uint64_t written() const { return written_; }

  private:
    test::scratch dir_;
    file_list list_;
    chunk_plan plan_;
    std::optional<copy_target> target_;
    copy_presence have_;
    std::vector<pack> packs_;
    std::vector<std::vector<std::byte>> sent_;
    std::atomic<std::uint64_t> written_{0}, read_{0};
};

TEST(pack_writers, whole_packs_are_written_however_they_are_cut) {
    for (std::size_t const slice : {1, 7, 999, 100'000}) {
        arriving_copy copy;
        copy.arrive(slice);
        for (char const* name : {"large", "small", "none"}) EXPECT_EQ(copy.copied(name), copy.source(name)) << name << slice;
        EXPECT_EQ(copy.written(), 2510u);
    }
}

TEST(pack_writers, a_byte_that_changed_on_its_way_is_named_and_nothing_is_placed) {
    arriving_copy copy;
    std::size_t const pack = copy.pack_of("src/large", 1000);
    copy.bytes_of(pack)[5] ^= std::byte{1};
    try {
        copy.arrive(100'000);
        FAIL() << "nobody noticed";
    } catch (error const& caught) {
        EXPECT_EQ(caught.code(), errc::invalid_data);
        EXPECT_THAT(caught.what(), HasSubstr("src/large: chunk 1 (from byte 1000) was damaged on its way: checksum "));
        EXPECT_THAT(caught.what(), HasSubstr("check the network and the memory of the nodes"));
    }
    EXPECT_TRUE(copy.copied("large").empty());
}

TEST(pack_writers, a_checksum_that_changed_on_its_way_counts_too) {
    arriving_copy copy;
    copy.bytes_of(copy.pack_of("src/large", 2000)).back() ^= std::byte{0x80};
    EXPECT_THROW(copy.arrive(64), error);
}

}  // namespace
}  // namespace muster
