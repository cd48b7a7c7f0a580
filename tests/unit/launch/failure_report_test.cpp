#include "launch/run/failure_report.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(failure_report, says_what_happened_what_to_do_and_what_was_written_last) {
    EXPECT_EQ(describe(failure_report{"rank 1 on a", "exited with code 3", duration(2), 0, "", ""}),
              "rank 1 on a exited with code 3, 2 s after the start");
    EXPECT_EQ(describe(failure_report{"rank 1 on a", "exited with code 3", duration(2), 7, "mend it", "one\ntwo\n"}),
              "rank 1 on a exited with code 3, 2 s after the start; ending the other 7\n  mend it\n"
              "  the last it wrote on stderr:\n  | one\n  | two");
}

TEST(failure_report, only_bad_ends_are_faults) {
    EXPECT_EQ(find_end_fault(0), std::nullopt);
    EXPECT_EQ(find_end_fault(3 << 8), (end_fault{"exited with code 3", 3, ""}));
    EXPECT_EQ(find_end_fault(11), (end_fault{"was killed by signal 11 (SIGSEGV)", 128 + 11, ""}));
    auto const killed = find_end_fault(9);
    ASSERT_TRUE(killed);
    EXPECT_EQ(killed->exit_code, 128 + 9);
    EXPECT_TRUE(killed->advice.starts_with("muster did not send it"));
}

}  // namespace
}  // namespace muster
