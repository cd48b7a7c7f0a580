#include "launch/engine/engines.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "tests/unit/launch/engine_answers.hpp"

namespace muster {
namespace {

using testing::Contains;
using testing::IsSupersetOf;
using testing::Not;
using testing_engines::answers;
using testing_engines::fixture;
using testing_engines::job_on;

mpirun_program const version_4{"mpirun", false, true, {4, 1}};
mpirun_program const version_5{"mpirun", true, true, {5, 0}};
mpirun_program const prterun{"prterun", true, false, {3, 0}};

using words = std::vector<std::string>;

/// Whether these words stand in the command, one behind the other.
bool has_words(words const& argv, words const& wanted) {
    return std::search(argv.begin(), argv.end(), wanted.begin(), wanted.end()) != argv.end();
}

TEST(mpirun_engine, whose_it_is) {
    EXPECT_EQ(read_mpirun_version("mpirun", fixture("mpirun_version_4.1.4")), version_4);
    EXPECT_EQ(read_mpirun_version("mpirun", fixture("mpirun_version_5.0.11")), version_5);
    EXPECT_EQ(read_mpirun_version("prterun", fixture("prterun_version_3.0.14")), prterun);
    EXPECT_EQ(read_mpirun_version("mpirun", fixture("hydra_version_4.0.2")), std::nullopt);
    EXPECT_EQ(read_mpirun_version("mpirun", "Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230307\n"), std::nullopt);
    EXPECT_EQ(read_mpirun_version("mpirun", "(Open MPI)"), std::nullopt);
    EXPECT_EQ(read_mpirun_version("mpirun", ""), std::nullopt);
}

TEST(mpirun_engine, every_layout_in_the_same_words) {
    auto job = job_on({4, 0, 3}, {-1, -1, -1}, scheduler_kind::hostfile);
    job.shim_variables = {"MUSTER_LAUNCHER", "MUSTER_TOKEN"};
    auto const command = mpirun_command_of(version_4, job, false);
    EXPECT_EQ(command.argv,
              (words{"mpirun", "--hostfile", "/scratch/mpirun.hosts", "--map-by", "seq", "-np", "7", "--bind-to", "none", "-x",
                     "MUSTER_LAUNCHER", "-x", "MUSTER_TOKEN", "/bin/muster", "shim", "--guarded", "a.out"}));
    ASSERT_EQ(command.files.size(), 1U);
    EXPECT_EQ(command.files[0].second, "n0\nn0\nn0\nn0\nn2\nn2\nn2\n");
    EXPECT_EQ(command.speaks, wire_up::pmix);
    job.map.order = map_policy::node;
    EXPECT_EQ(mpirun_command_of(version_5, job, false).files[0].second, "n0\nn2\nn0\nn2\nn0\nn2\nn0\n");
}

TEST(mpirun_engine, root_must_be_meant) {
    auto const job = job_on({1, 1}, {-1, -1}, scheduler_kind::hostfile);
    EXPECT_THAT(mpirun_command_of(version_4, job, true).argv, Contains("--allow-run-as-root"));
    EXPECT_THAT(mpirun_command_of(version_4, job, false).argv, Not(Contains("--allow-run-as-root")));
}

TEST(mpirun_engine, full_host_names_are_kept) {
    auto job = job_on({1, 1}, {-1, -1}, scheduler_kind::hostfile);
    EXPECT_FALSE(has_words(mpirun_command_of(version_4, job, false).argv, {"orte_keep_fqdn_hostnames"}));
    job.given.nodes[1].name = "n1.lab.example";
    EXPECT_TRUE(has_words(mpirun_command_of(version_4, job, false).argv, {"--mca", "orte_keep_fqdn_hostnames", "1"}));
    EXPECT_TRUE(has_words(mpirun_command_of(version_5, job, false).argv, {"--prtemca", "prte_keep_fqdn_hostnames", "1"}));
}

TEST(mpirun_engine, its_own_host_has_the_name_that_mpirun_knows) {
    auto job = job_on({1, 2}, {-1, -1}, scheduler_kind::hostfile);
    auto const hosts = [&] { return mpirun_command_of(version_4, job, false).files[0].second; };
    auto const keeps = [&] { return has_words(mpirun_command_of(version_4, job, false).argv, {"orte_keep_fqdn_hostnames"}); };
    job.this_host_in_full = "n0";
    job.given.nodes[0].name = "n0.lab.example";
    EXPECT_EQ(hosts(), "n0\nn1\nn1\n");
    EXPECT_FALSE(keeps()) << "no name has a domain then";
    job.given.nodes[1].name = "n1.lab.example";
    EXPECT_EQ(hosts(), "n0\nn1.lab.example\nn1.lab.example\n");
    EXPECT_TRUE(keeps());
    job.this_host_in_full = "n0.lab.example";
    EXPECT_EQ(hosts(), "n0.lab.example\nn1.lab.example\nn1.lab.example\n");
    job.given.nodes[1].name = "n1";
    EXPECT_EQ(hosts(), "n0\nn1\nn1\n") << "mpirun drops its own domain";
    job.given.nodes[0].name = "10.77.0.1";
    EXPECT_EQ(hosts(), "10.77.0.1\nn1\nn1\n");
}

TEST(mpirun_engine, in_a_pbs_job_its_daemons_start_by_pbs) {
    auto const job = job_on({1, 1}, {-1, -1}, scheduler_kind::pbs);
    auto const four = mpirun_command_of(version_4, job, false);
    EXPECT_TRUE(has_words(four.argv, {"--mca", "plm", "rsh", "--mca", "plm_rsh_agent", "sh /scratch/tmrsh", "--mca",
                                      "plm_rsh_no_tree_spawn", "1", "--mca", "orte_leave_session_attached", "1"}));
    EXPECT_TRUE(four.own_session);
    auto const five = mpirun_command_of(version_5, job, false).argv;
    EXPECT_TRUE(has_words(five, {"--prtemca", "plm", "ssh", "--prtemca", "plm_ssh_agent", "sh /scratch/tmrsh", "--prtemca",
                                 "plm_ssh_no_tree_spawn", "1", "--prtemca", "prte_leave_session_attached", "1"}));
    EXPECT_FALSE(mpirun_command_of(version_4, job_on({1, 1}, {-1, -1}, scheduler_kind::hostfile), false).own_session);
}

TEST(mpirun_engine, its_daemons_start_by_the_users_remote_shell) {
    auto job = job_on({1, 1}, {-1, -1}, scheduler_kind::hostfile);
    job.remote_shell = "rsh -l me";
    EXPECT_EQ(mpirun_command_of(version_4, job, false).variables, (environment{{"OMPI_MCA_plm_rsh_agent", "rsh -l me"}}));
    EXPECT_EQ(mpirun_command_of(version_5, job, false).variables, (environment{{"PRTE_MCA_plm_ssh_agent", "rsh -l me"}}));
    job.given.scheduler = scheduler_kind::pbs;
    auto const pbs = mpirun_command_of(version_4, job, false);
    EXPECT_TRUE(has_words(pbs.argv, {"--mca", "plm", "rsh"}));
    EXPECT_FALSE(has_words(pbs.argv, {"plm_rsh_agent"}));
    EXPECT_TRUE(pbs.own_session);
    for (auto const* own : {"OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"}) {
        job.variables = {{own, "my agent"}};
        EXPECT_EQ(mpirun_command_of(version_4, job, false).variables, job.variables);
        auto const five = mpirun_command_of(version_5, job, false).variables;
        EXPECT_EQ(five.get("PRTE_MCA_plm_ssh_agent"), "my agent") << own;
    }
}

TEST(mpirun_engine, in_a_pbs_job_hosts_have_their_short_names) {
    auto job = job_on({1, 1}, {-1, -1}, scheduler_kind::pbs);
    job.given.nodes[0].name = "n0.lab.example";
    auto const command = mpirun_command_of(version_4, job, false);
    EXPECT_EQ(command.files.at(0).second, "n0\nn1\n");
    EXPECT_FALSE(has_words(command.argv, {"orte_keep_fqdn_hostnames"}));
}

TEST(mpirun_engine, the_network_interface_is_for_daemons_and_ranks) {
    auto job = job_on({1, 1}, {-1, -1}, scheduler_kind::hostfile);
    EXPECT_FALSE(has_words(mpirun_command_of(version_4, job, false).argv, {"btl_tcp_if_include"}));
    job.network_interface = "ib0";
    EXPECT_TRUE(has_words(mpirun_command_of(version_4, job, false).argv,
                          {"--mca", "oob_tcp_if_include", "ib0", "--mca", "btl_tcp_if_include", "ib0"}));
    EXPECT_TRUE(has_words(mpirun_command_of(prterun, job, false).argv,
                          {"--prtemca", "prte_if_include", "ib0", "-x", "OMPI_MCA_btl_tcp_if_include=ib0"}));
}

TEST(mpirun_engine, in_a_slurm_job_slots_are_the_plans) {
    auto job = job_on({4, 2}, {4, 4});
    job.variables = {
        {"SLURM_JOB_ID", "42"}, {"SLURM_JOB_NUM_NODES", "3"}, {"SLURM_TASKS_PER_NODE", "1(x3)"}, {"SLURM_GPUS_PER_TASK", "1"}};
    EXPECT_EQ(mpirun_command_of(version_4, job, false).variables, (environment{{"SLURM_JOB_ID", "42"},
                                                                               {"SLURM_JOB_NUM_NODES", "3"},
                                                                               {"SLURM_TASKS_PER_NODE", "4(x3)"},
                                                                               {"SLURM_OVERLAP", "1"},
                                                                               {"SLURM_GRES", "gpu:4"}}));
    EXPECT_TRUE(has_words(mpirun_command_of(version_4, job, false).argv, {"--mca", "orte_leave_session_attached", "1"}));
    job.given.nodes[1].gpus = 2;
    EXPECT_FALSE(mpirun_command_of(version_4, job, false).variables.has("SLURM_GRES"));
}

TEST(mpirun_engine, a_probe_reads_nothing) {
    auto job = job_on({4, 2}, {4, 4}, scheduler_kind::hostfile);
    job.probe = true;
    auto const command = mpirun_command_of(version_4, job, false);
    EXPECT_TRUE(has_words(command.argv, {"--stdin", "none"}));
    EXPECT_EQ(command.files[0].second, "n0\nn1\n");
}

TEST(mpirun_engine, extra_arguments_stand_behind_our_own) {
    auto job = job_on({1, 1}, {-1, -1}, scheduler_kind::hostfile);
    job.extra_arguments = {"--mca", "pml", "ucx"};
    EXPECT_TRUE(has_words(mpirun_command_of(version_4, job, false).argv,
                          {"none", "--mca", "pml", "ucx", "/bin/muster", "shim", "--guarded", "a.out"}));
}

TEST(mpirun_engine, what_is_on_PATH) {
    auto const job = job_on({1, 1}, {-1, -1}, scheduler_kind::hostfile);
    answers a;
    EXPECT_EQ(mpirun_unavailable(job, a.sources()), "there is no mpirun of Open MPI and no prterun on PATH");
    a.said["mpirun --version"] = {0, fixture("hydra_version_4.0.2"), ""};
    EXPECT_EQ(mpirun_unavailable(job, a.sources()), "mpirun is not Open MPI's (HYDRA build details:)");
    a.said["mpirun.openmpi --version"] = {0, fixture("mpirun_version_4.1.4"), ""};
    EXPECT_EQ(mpirun_unavailable(job, a.sources()), std::nullopt);
    EXPECT_THAT(mpirun_command(job, a.sources()).argv.front(), testing::EndsWith("mpirun.openmpi"));
    EXPECT_EQ(mpirun_unavailable(job_on({1, 1}, {4, 4}), a.sources()), "in a Slurm job mpirun needs srun, which is not on PATH");
}

}  // namespace
}  // namespace muster
