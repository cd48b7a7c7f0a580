#include "comm/membership/kept_slots.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "comm/membership/kept_beginning.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(kept_slots, a_commit_takes_the_oldest_and_never_the_newest) {
    EXPECT_THAT(slots_for_commit({{{5, 9, true}, {7, 11, true}, {6, 10, true}, {}}}, 1), ElementsAre(0, 2, 3));
    EXPECT_THAT(slots_for_commit({{{5, 9, true}, {6, 10, false}, {}, {}}}, 0), ElementsAre(1, 2, 3));
    EXPECT_THAT(slots_for_commit({}, kept::slots), ElementsAre(0, 1, 2, 3));
}

TEST(kept_slots, where_ranks_have_gone_back_later_commits_are_of_another_history) {
    auto const other = find_other_history({{{5, 9, true}, {7, 11, true}, {6, 10, true}, {8, 12, false}}}, 10);
    EXPECT_THAT(other.later, ElementsAre(1, 2, 3));
    EXPECT_EQ(other.last, 0u);
}

TEST(kept_slots, ranks_that_begin_anew_forget_nothing) {
    EXPECT_THAT(find_other_history({{{5, 9, true}, {6, 10, true}, {4, 0, false}, {}}}, 1).later, IsEmpty());
    EXPECT_THAT(find_other_history({}, 1).later, IsEmpty());
}

TEST(kept_beginning, is_the_newest_commit_that_all_find_or_else_the_newest_that_one_finds) {
    auto const choose = [](std::vector<std::uint64_t> const& steps, std::size_t most) {
        auto const chosen = muster_choose_kept_beginning(steps.data(), steps.size() / most, most);
        return std::tuple(chosen.step, chosen.is_common != 0, chosen.root, chosen.next);
    };
    EXPECT_EQ(choose({9, 8, 0, 8, 7, 0, 10, 9, 8}, 3), std::tuple(8, true, 0, 12));
    EXPECT_EQ(choose({7, 6, 9, 8, 9, 5}, 2), std::tuple(9, false, 1, 11));
    EXPECT_EQ(choose({0, 0, 9, 8}, 2), std::tuple(9, false, 1, 11));
    EXPECT_EQ(choose({0, 0, 0, 0}, 2), std::tuple(0, false, 0, 2));
    EXPECT_EQ(choose({5, 3}, 2), std::tuple(5, true, 0, 7));
}

TEST(kept_slots, a_process_continues_after_the_newest_whole_copy_that_it_finds) {
    EXPECT_EQ(continue_from({{{5, 9, true}, {7, 11, false}, {6, 10, true}, {}}}), (kept_commits{6, 2, false}));
    EXPECT_EQ(continue_from({}), kept_commits{});
}

TEST(kept_slots, the_first_commit_forgets_another_history_and_spares_what_the_others_have_too) {
    kept_slots all{{{5, 9, true}, {7, 11, true}, {6, 10, true}, {}}};
    auto its = continue_from(all);
    EXPECT_THAT(begin_commit(its, all, 10), ElementsAre(1, 2));
    EXPECT_EQ(its.newest, 0u) << "also while a copy of the other history is held, and so whole";
    EXPECT_THAT(slots_for_commit(all, its.newest), ElementsAre(2, 1, 3));
    EXPECT_EQ(end_commit(its, 2), 8u);
    EXPECT_EQ(its.newest, 2u);
    EXPECT_THAT(begin_commit(its, all, 10), IsEmpty()) << "later commits are its own";
}

}  // namespace
}  // namespace muster
