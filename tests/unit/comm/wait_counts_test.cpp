// What ranks count of their waits in a page that another process reads.
#include "comm/backend/wait_counts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "ranks_as_children.hpp"

namespace muster {
namespace {

/// A rank's page, in this process and its children.
class page_file {
  public:
    page_file() : file_(::memfd_create("page", 0)) {
        if (::ftruncate(file_.get(), wait_page::bytes) != 0) throw std::bad_alloc();
        auto* const memory = ::mmap(nullptr, wait_page::bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
        page_ = static_cast<wait_page*>(memory);
        page_->layout = wait_page::known_layout;
    }
    page_file(page_file const&) = delete;
    page_file& operator=(page_file const&) = delete;
    ~page_file() { ::munmap(page_, wait_page::bytes); }

    wait_page& page() const { return *page_; }
    std::string path() const { return fmt::format("/proc/{}/fd/{}", owner_, file_.get()); }

  private:
    pid_t owner_ = ::getpid();
    unique_fd file_;
    wait_page* page_ = nullptr;
};

constexpr int size = 3, late = 1;
constexpr std::uint64_t turns = 2;

/// Waits until both have counted all of the collectives before, and then a part of their wait for the late rank.
void await_counts(wait_page const& one, wait_page const& other, std::uint64_t before) {
    auto const until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    auto const await = [&](auto const& holds) {
        while (!holds() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    await([&] { return one.collectives >= before && other.collectives >= before; });
    auto const& of_one = one.by_rank[late].waited_ns;
    auto const& of_other = other.by_rank[late].waited_ns;
    await([&, was_one = of_one.load(), was_other = of_other.load()] { return of_one != was_one && of_other != was_other; });
}

class waits_of : public testing::TestWithParam<char const*> {};

/// The late rank comes when both others have counted that they wait for it: they do so while the wait goes on.
TEST_P(waits_of, the_others_show_who_came_last) {
    std::array<page_file, size> pages;
    address_board const board;
    ranks_as_children ranks(size, [&](identity const& who) {
        auto options = options_of(GetParam(), who, board, 60);
        options.wait_page = pages[static_cast<std::size_t>(who.rank)].path();
        auto all = communicator::create(who, options);
        std::vector<float> values(1000, 1.0f);
        for (std::uint64_t turn = 0; turn < turns; ++turn) {
            if (who.rank == late) await_counts(pages[0].page(), pages[2].page(), turn);
            all.allreduce("w", view_of(std::span(values)), view_of(std::span(values)), reduction::max).wait();
        }
    });
    for (int rank = 0; rank < size; ++rank) EXPECT_EQ(ranks.words_of(rank), "fine");
    for (int rank = 0; rank < size; ++rank) {
        if (rank == late) continue;
        auto const& page = pages[static_cast<std::size_t>(rank)].page();
        EXPECT_GE(page.collectives, turns);
        EXPECT_GE(page.by_rank[late].times, 1u) << "rank " << rank;
        EXPECT_GT(page.by_rank[late].waited_ns, page.waited_ns / 2) << "rank " << rank;
        EXPECT_GT(page.waited_ns, pages[late].page().waited_ns) << "rank " << rank;
    }
}

INSTANTIATE_TEST_SUITE_P(backends, waits_of, testing::Values("shm", "tcp"),
                         [](auto const& one) { return std::string(one.param); });

TEST(wait_counts, are_kept_only_in_a_page_of_this_layout) {
    EXPECT_EQ(wait_counts::open(""), nullptr);
    EXPECT_EQ(wait_counts::open("/proc/1/fd/999999"), nullptr);
    page_file const other;
    other.page().layout = 7;
    EXPECT_EQ(wait_counts::open(other.path()), nullptr);
    page_file const known;
    auto const counts = wait_counts::open(known.path());
    ASSERT_NE(counts, nullptr);
    counts->add_time(duration{1.5}, 251);
    counts->add_wait(251);
    counts->add_time(duration{0.5}, 252);  // beyond the last that has a place
    counts->add_wait(252);
    counts->add_time(duration{1}, -1);
    counts->add_wait(-1);
    EXPECT_EQ(known.page().collectives, 3u);
    EXPECT_EQ(known.page().waited_ns, 3'000'000'000u);
    EXPECT_EQ(known.page().by_rank[251].times, 1u);
    EXPECT_EQ(known.page().by_rank[251].waited_ns, 1'500'000'000u);
    EXPECT_EQ(known.page().users, 1u);
}

TEST(wait_counts, of_data_are_no_collectives) {
    page_file const one;
    auto const counts = wait_counts::open(one.path(), wait_counts::use::data);
    ASSERT_NE(counts, nullptr);
    counts->add_batch(duration{0.25});
    counts->add_batch({});
    EXPECT_EQ(one.page().batches, 2u);
    EXPECT_EQ(one.page().data_ns, 250'000'000u);
    EXPECT_EQ(one.page().users, 0u);
    EXPECT_EQ(one.page().waited_ns, 0u);
}

}  // namespace
}  // namespace muster
