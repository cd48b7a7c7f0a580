#include "comm/backend/late_ranks.hpp"

#include <gtest/gtest.h>

namespace muster::detail {
namespace {

TEST(blame_message, comes_back_as_it_was_written_with_the_sender) {
    auto const text = write_blame({{3, false, "process 4711 is stopped"}, {1, true, "process 12 is gone"}});
    EXPECT_EQ(text, "3 process 4711 is stopped\n1 process 12 is gone\n");
    auto const read = read_blame(text, "rank 0 on n0", 4);
    ASSERT_EQ(read.size(), 2u);
    EXPECT_EQ(read[0].rank, 1);
    EXPECT_EQ(read[1].rank, 3);
    EXPECT_TRUE(read[1].dead);
    EXPECT_EQ(read[1].why, "process 4711 is stopped; rank 0 on n0 gave it up");
}

TEST(blame_message, lines_of_another_form_are_left_out) {
    for (auto const* text : {"", "\n", "x y\n", "4 beyond the world\n", "-1 nobody\n", "2", "2\n", "99999999999999999999 x\n"})
        EXPECT_TRUE(read_blame(text, "s", 4).empty()) << text;
    EXPECT_EQ(read_blame("2 cut off", "s", 4).size(), 1u);
}

TEST(blame_message, fits_a_message_without_a_handshake) {
    std::vector<late_rank> many;
    for (int rank = 0; rank < 1000; ++rank) many.push_back({rank, true, "process 123456 is gone"});
    EXPECT_LE(write_blame(many).size(), 1024u);
}

}  // namespace
}  // namespace muster::detail
