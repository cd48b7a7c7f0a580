// What the process that starts a rank reads in the rank's page.
#include "launch/samples/rank_waits.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace muster {
namespace {

using testing::ElementsAre;
using other = waits_for_rank;

rank_sample read(rank_waits const& from) {
    rank_sample rank;
    from.read(rank);
    return rank;
}

TEST(rank_waits, are_nothing_until_the_rank_counts) {
    auto const page = rank_waits::make();
    EXPECT_EQ(read(page), rank_sample());
    EXPECT_EQ(read(rank_waits()), rank_sample());
    EXPECT_EQ(rank_waits().path(), "");
}

/// The page as its rank has it.
class opened_page {
  public:
    explicit opened_page(std::string const& path) {
        unique_fd const file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
        page_ = static_cast<wait_page*>(::mmap(nullptr, wait_page::bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
    }
    void use_collectives() { ++page_->users; }
    void take_batch(double waited_s) {
        ++page_->batches;
        page_->data_ns += static_cast<std::uint64_t>(waited_s * 1e9);
    }
    opened_page(opened_page const&) = delete;
    opened_page& operator=(opened_page const&) = delete;
    ~opened_page() { ::munmap(page_, wait_page::bytes); }
    void add(double waited_s, std::size_t last) {
        auto const ns = static_cast<std::uint64_t>(waited_s * 1e9);
        ++page_->collectives;
        page_->waited_ns += ns;
        ++page_->by_rank.at(last).times;
        page_->by_rank.at(last).waited_ns += ns;
    }

  private:
    wait_page* page_ = nullptr;
};

TEST(rank_waits, are_in_a_page_that_no_rank_can_cut) {
    auto const page = rank_waits::make();
    EXPECT_NE(::truncate(page.path().c_str(), 0), 0);
    EXPECT_EQ(read(page), rank_sample());
}

TEST(rank_waits, name_the_ranks_that_came_last) {
    auto const page = rank_waits::make();
    opened_page ranks(page.path());
    ranks.use_collectives();
    EXPECT_EQ(read(page).waits, wait_sample()) << "it uses collectives, and has not waited";
    for (std::size_t rank = 0; rank < 6; ++rank) ranks.add(1.0 + static_cast<double>(rank), rank);
    ranks.add(9, 2);
    auto const seen = read(page);
    ASSERT_TRUE(seen.waits);
    EXPECT_EQ(seen.waits->collectives, 7u);
    EXPECT_DOUBLE_EQ(seen.waits->waited_s, 30);
    EXPECT_EQ(seen.data_wait_s, std::nullopt);
    EXPECT_THAT(seen.waits->longest, ElementsAre(other{2, 2, 12}, other{5, 1, 6}, other{4, 1, 5}, other{3, 1, 4}));
}

TEST(rank_waits, for_data_are_no_waits_for_others) {
    auto const page = rank_waits::make();
    opened_page rank(page.path());
    rank.take_batch(0.25);
    rank.take_batch(0.5);
    auto const seen = read(page);
    EXPECT_EQ(seen.waits, std::nullopt);
    EXPECT_DOUBLE_EQ(seen.data_wait_s.value_or(-1), 0.75);
}

}  // namespace
}  // namespace muster
