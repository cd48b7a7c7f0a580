#include "launch/engine/pbs_remote.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace muster {
namespace {

TEST(pbs_remote, where_pbs_is) {
    EXPECT_EQ(pbs_exec("PBS_SERVER=head\nPBS_EXEC=/opt/pbs\n"), "/opt/pbs");
    EXPECT_EQ(pbs_exec("# PBS_EXEC=/old\n  PBS_EXEC=/new \r\n"), "/new");
    EXPECT_EQ(pbs_exec("PBS_EXEC=\n"), std::nullopt);
    EXPECT_EQ(pbs_exec(""), std::nullopt);
}

TEST(pbs_remote, hosts_as_the_node_file_spells_them) {
    auto const* file = "n1.lab.example\nn1.lab.example\nn2\nn2.lab.example\n";
    EXPECT_EQ(spelled_as_in(file, "n1"), "n1.lab.example");
    EXPECT_EQ(spelled_as_in(file, "n1.other"), "n1.lab.example");
    EXPECT_EQ(spelled_as_in(file, "n2"), "n2");
    EXPECT_EQ(spelled_as_in(file, "n2.lab.example"), "n2.lab.example");
    EXPECT_EQ(spelled_as_in(file, "n3"), "n3");
    EXPECT_EQ(spelled_as_in("", "n1"), "n1");
}

TEST(pbs_remote, only_in_a_job_and_with_a_command) {
    EXPECT_THROW(tmrsh_command({"n1"}, {{"PBS_NODEFILE", "/x"}}), error);
    EXPECT_THROW(tmrsh_command({"n1", "true"}, {}), error);
}

}  // namespace
}  // namespace muster
