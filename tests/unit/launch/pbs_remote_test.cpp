#include "launch/remote/pbs_remote.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

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

TEST(pbs_remote, the_file_of_PBS_itself) {
    EXPECT_EQ(own_node_file("PBS_HOME=/home/pbs\n", "7.head"), "/home/pbs/aux/7.head");
    EXPECT_EQ(own_node_file("PBS_EXEC=/opt/pbs\n", "7[2].head"), "/var/spool/pbs/aux/7[2].head");
    EXPECT_EQ(own_node_file("PBS_HOME=/home/pbs\n", ""), "");
}

TEST(pbs_remote, a_task_gets_umask_and_soft_limits) {
    auto const before = ::umask(0027);
    auto const words = umask_and_limits();
    EXPECT_EQ(::umask(before), 0027U) << "it stays as it was";
    EXPECT_TRUE(words.starts_with("umask 0027; ulimit -Sc ")) << words;
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    EXPECT_NE(words.find("ulimit -Sn " + std::to_string(files.rlim_cur) + " 2>/dev/null; "), std::string::npos) << words;
}

TEST(pbs_remote, the_path_of_muster_may_have_blanks) {
    EXPECT_EQ(tmrsh_script("/home/my dir/muster"), "exec '/home/my dir/muster' tmrsh \"$@\"\n");
    EXPECT_EQ(tmrsh_script("/bin/muster", true), "exec /bin/muster tmrsh --stay \"$@\"\n");
}

TEST(pbs_remote, only_in_a_job_and_with_a_command) {
    EXPECT_THROW(tmrsh_command({"n1"}, {{"PBS_NODEFILE", "/x"}}), error);
    EXPECT_THROW(tmrsh_command({"n1", "true"}, {}), error);
}

}  // namespace
}  // namespace muster
