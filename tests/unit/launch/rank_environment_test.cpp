#include "launch/ranks/rank_variables.hpp"

#include <gtest/gtest.h>

#include "pmix/identity.hpp"

namespace muster {
namespace {

TEST(rank_environments, launchers_values_but_the_nodes_own_things) {
    environment const launcher{{"PATH", "/venv/bin:/usr/bin"}, {"DATA", "/scratch"},          {"HOSTNAME", "login1"},
                               {"TMPDIR", "/tmp/login"},       {"CUDA_VISIBLE_DEVICES", "0"}, {"OMPI_MCA_pml", "ucx"},
                               {"SLURM_JOB_ID", "7"}};
    environment const node{{"PATH", "/usr/bin"},      {"HOSTNAME", "node3"},   {"CUDA_VISIBLE_DEVICES", "2,3"},
                           {"PMIX_RANK", "5"},        {"OMPI_MCA_ess", "pmi"}, {"SLURM_JOB_ID", "7"},
                           {"SLURM_PROCID", "5"},     {"NODE_ONLY", "kept"},   {"MUSTER_TOKEN", "secret"},
                           {"MUSTER_LAUNCHER", "a:1"}};
    auto const merged = rank_environment(launcher, node, true);
    environment const expected{
        {"PATH", "/venv/bin:/usr/bin"}, {"DATA", "/scratch"}, {"HOSTNAME", "node3"},   {"CUDA_VISIBLE_DEVICES", "2,3"},
        {"OMPI_MCA_pml", "ucx"},        {"PMIX_RANK", "5"},   {"OMPI_MCA_ess", "pmi"}, {"SLURM_JOB_ID", "7"},
        {"SLURM_PROCID", "5"},          {"NODE_ONLY", "kept"}};
    EXPECT_EQ(merged, expected) << "TMPDIR of the login node must not reach the compute node";
}

TEST(rank_environments, what_PBS_says_of_threads_is_nobodys_wish) {
    environment const pbs{{"PBS_JOBID", "7"}, {"NCPUS", "4"}, {"OMP_NUM_THREADS", "4"}};
    environment const others{{"PBS_JOBID", "7"}, {"NCPUS", "4"}, {"OMP_NUM_THREADS", "2"}};
    EXPECT_FALSE(variables_for_ranks(pbs, {}).has("OMP_NUM_THREADS"));
    EXPECT_EQ(variables_for_ranks(pbs, {"OMP_NUM_THREADS"}).get("OMP_NUM_THREADS"), "4");
    EXPECT_EQ(variables_for_ranks(others, {}).get("OMP_NUM_THREADS"), "2");
    EXPECT_EQ(variables_for_ranks({{"NCPUS", "4"}, {"OMP_NUM_THREADS", "4"}}, {}).get("OMP_NUM_THREADS"), "4");
    EXPECT_FALSE(rank_environment({}, pbs, false).has("OMP_NUM_THREADS"));
    EXPECT_EQ(rank_environment({{"OMP_NUM_THREADS", "2"}}, pbs, false).get("OMP_NUM_THREADS"), "2");
}

TEST(rank_environments, a_daemons_step_is_not_its_ranks) {
    environment const node{{"SLURM_PROCID", "1"},  {"SLURM_NTASKS", "4"},         {"SLURM_STEP_NODELIST", "n[1-4]"},
                           {"SLURM_JOB_ID", "7"},  {"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "16"},
                           {"SLURM_LOCALID", "0"}, {"SLURM_STEP_ID", "3"}};
    auto const merged = rank_environment({{"SLURM_NTASKS", "16"}}, node, false);
    EXPECT_EQ(merged, (environment{{"SLURM_JOB_ID", "7"}, {"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "16"}}));
    auto const who = identify(merged, "n2");
    EXPECT_EQ(who.rank, 5);
    EXPECT_EQ(who.world_size, 16);
}

TEST(rank_environments, the_secret_never_reaches_the_program) {
    for (bool const own_step : {true, false}) {
        auto const merged =
            rank_environment({{"MUSTER_TOKEN", "a"}}, {{"MUSTER_TOKEN", "b"}, {"MUSTER_LAUNCHER", "c"}}, own_step);
        EXPECT_FALSE(merged.has("MUSTER_TOKEN"));
        EXPECT_FALSE(merged.has("MUSTER_LAUNCHER"));
    }
}

TEST(exports, left_out_variables_match_a_pattern_and_are_not_asked_for) {
    environment variables{{"AWS_SECRET", "a"}, {"AWS_REGION", "b"}, {"HF_TOKEN", "c"}, {"TOKEN_OF", "d"}, {"PATH", "/bin"}};
    leave_out(variables, {"AWS_*", "*_TOKEN"}, {"AWS_REGION", "OTHER=1"});
    EXPECT_EQ(variables, (environment{{"AWS_REGION", "b"}, {"TOKEN_OF", "d"}, {"PATH", "/bin"}}));
    leave_out(variables, {}, {});
    EXPECT_EQ(variables.get("TOKEN_OF"), "d");
}

}  // namespace
}  // namespace muster
