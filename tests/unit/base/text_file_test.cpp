#include "base/process/files.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(read_text_file, is_empty_where_nothing_can_be_read) {
    EXPECT_EQ(read_text_file("/no/such/file"), "");
    EXPECT_EQ(read_text_file("/"), "") << "opened, but not read: as a file of a process that has ended";
    EXPECT_EQ(read_text_file("/dev/null"), "");
    EXPECT_NE(read_text_file("/proc/self/stat"), "");
}

}  // namespace
}  // namespace muster
