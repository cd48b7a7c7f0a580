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

TEST(rank_waits, are_nothing_until_the_rank_counts) {
    auto const page = rank_waits::make();
    EXPECT_EQ(page.read(), std::nullopt);
    EXPECT_EQ(rank_waits().read(), std::nullopt);
    EXPECT_EQ(rank_waits().path(), "");
}

/// The page as its rank has it.
class opened_page {
  public:
    explicit opened_page(std::string const& path) {
        unique_fd const file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
        page_ = static_cast<wait_page*>(::mmap(nullptr, wait_page::bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
        ++page_->users;
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
    EXPECT_EQ(page.read(), std::nullopt);
}

TEST(rank_waits, name_the_ranks_that_came_last) {
    auto const page = rank_waits::make();
    opened_page ranks(page.path());
    EXPECT_EQ(page.read(), wait_sample()) << "it uses collectives, and has not waited";
    for (std::size_t rank = 0; rank < 6; ++rank) ranks.add(1.0 + static_cast<double>(rank), rank);
    ranks.add(9, 2);
    auto const read = page.read();
    ASSERT_TRUE(read);
    EXPECT_EQ(read->collectives, 7u);
    EXPECT_DOUBLE_EQ(read->waited_s, 30);
    EXPECT_THAT(read->longest, ElementsAre(other{2, 2, 12}, other{5, 1, 6}, other{4, 1, 5}, other{3, 1, 4}));
}

}  // namespace
}  // namespace muster
