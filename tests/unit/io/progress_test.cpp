#include "io/stage/progress.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::stage {
namespace {

std::string shown(std::size_t columns) {
    return progress_bar("convert", 1'288'490'188, 3'113'851'289, 2, columns);
}

TEST(progress_bars, leave_out_what_has_no_room) {
    EXPECT_EQ(shown(80), "convert: 41 %, 1.2 GiB of 2.9 GiB, 644 MB/s, 2.83 s left [########............]");
    EXPECT_EQ(shown(60), "convert: 41 %, 1.2 GiB of 2.9 GiB [#########..............]");
    EXPECT_EQ(shown(40), "convert: 41 % [#########..............]");
    EXPECT_EQ(shown(20), "convert: 41 %");
}

TEST(progress_bars, fit_every_terminal) {
    for (std::size_t columns = 0; columns < 200; ++columns) EXPECT_LE(shown(columns).size(), columns);
    EXPECT_THAT(progress_bar("a", 5, 5, 1, 60), testing::HasSubstr("#]")) << "the end";
    EXPECT_THAT(progress_bar("a", 0, 5, 0, 60), testing::HasSubstr("[.")) << "the beginning";
}

}  // namespace
}  // namespace muster::stage
