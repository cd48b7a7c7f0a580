#include "pmix/scrub.hpp"

#include <gtest/gtest.h>

#include "pmix/server/client_variables.hpp"

namespace muster::pmix {
namespace {

environment scrubbed(environment variables) {
    scrub_inherited(variables);
    return variables;
}

TEST(scrub, keeps_what_users_set) {
    environment const mine{{"OMPI_MCA_btl", "self,tcp"}, {"OMPI_MCA_pml", "ucx"},    {"OMPI_MCA_orte_tmpdir_base", "/fast"},
                           {"OMPI_CC", "clang"},         {"PMIX_MCA_gds", "hash"},   {"MPIR_CVAR_DEBUG_HOLD", "1"},
                           {"HYDRA_LAUNCHER", "ssh"},    {"MUSTER_SLOTS", "4"},      {"SLURM_JOB_ID", "7"},
                           {"SLURM_JOB_NODELIST", "n1"}, {"FLUX_URI", "local:///x"}, {"HOME", "/root"},
                           {"OMPI_MCA_pmix", "ext3x"}};
    EXPECT_EQ(scrubbed(mine), mine);
}

TEST(scrub, inside_mpirun) {
    // From a real `mpirun --mca btl self,tcp` of Open MPI 4.1.4.
    environment const rank{{"OMPI_APP_CTX_NUM_PROCS", "2"},
                           {"OMPI_COMMAND", "env"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                           {"OMPI_COMM_WORLD_NODE_RANK", "0"},
                           {"OMPI_COMM_WORLD_RANK", "0"},
                           {"OMPI_COMM_WORLD_SIZE", "2"},
                           {"OMPI_FILE_LOCATION", "/tmp/ompi.vm.0/pid.28955/0/0"},
                           {"OMPI_FIRST_RANKS", "0"},
                           {"OMPI_MCA_btl", "self,tcp"},
                           {"OMPI_MCA_ess", "^singleton"},
                           {"OMPI_MCA_ess_base_jobid", "501547009"},
                           {"OMPI_MCA_ess_base_vpid", "0"},
                           {"OMPI_MCA_initial_wdir", "/tmp/px"},
                           {"OMPI_MCA_mpi_oversubscribe", "0"},
                           {"OMPI_MCA_orte_app_num", "0"},
                           {"OMPI_MCA_orte_bound_at_launch", "1"},
                           {"OMPI_MCA_orte_ess_node_rank", "0"},
                           {"OMPI_MCA_orte_ess_num_procs", "2"},
                           {"OMPI_MCA_orte_hnp_uri", "501547008.0;tcp://192.0.2.2:42661"},
                           {"OMPI_MCA_orte_jobfam_session_dir", "/tmp/ompi.vm.0/pid.28955"},
                           {"OMPI_MCA_orte_launch", "1"},
                           {"OMPI_MCA_orte_tmpdir_base", "/tmp"},
                           {"OMPI_MCA_pmix", "^s1,s2,cray,isolated"},
                           {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                           {"OMPI_MCA_shmem_RUNTIME_QUERY_hint", "mmap"},
                           {"OMPI_NUM_APP_CTX", "1"},
                           {"OMPI_UNIVERSE_SIZE", "2"},
                           {"PMIX_ID", "501547009.0"},
                           {"PMIX_MCA_mca_base_component_show_load_errors", "1"},
                           {"PMIX_NAMESPACE", "501547009"},
                           {"PMIX_RANK", "0"},
                           {"PMIX_SERVER_URI41", "501547008.0;tcp4://127.0.0.1:50573"}};
    environment const left{{"OMPI_MCA_btl", "self,tcp"}, {"PMIX_MCA_mca_base_component_show_load_errors", "1"}};
    EXPECT_EQ(scrubbed(rank), left);
}

TEST(scrub, inside_hydra_pals_and_flux) {
    environment const rank{{"HYDI_CONTROL_FD", "7"}, {"MPIR_CVAR_CH3_INTERFACE_HOSTNAME", "vm"},
                           {"MPI_LOCALNRANKS", "1"}, {"MPI_LOCALRANKID", "0"},
                           {"PMI_FD", "6"},          {"PMI_RANK", "0"},
                           {"PMI_SIZE", "1"},        {"PALS_RANKID", "0"},
                           {"FLUX_JOB_ID", "1"},     {"FLUX_TASK_RANK", "0"},
                           {"PMI2_SIZE", "3"},       {"JSM_JSRUN_PORT", "5"}};
    EXPECT_EQ(scrubbed(rank), environment{});
}

TEST(scrub, inside_srun) {
    environment const rank{{"SLURM_JOB_ID", "7"},  {"SLURM_PROCID", "0"},       {"SLURM_LOCALID", "0"},
                           {"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "1"},       {"SLURM_STEP_NUM_TASKS", "1"},
                           {"SLURM_NODEID", "0"},  {"SLURM_JOB_NUM_NODES", "1"}};
    EXPECT_EQ(scrubbed(rank), (environment{{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NUM_NODES", "1"}}));
}

job four_ranks() {
    return {.nspace = "n",
            .host = "h",
            .world_size = 4,
            .session_dir = "/tmp/outer",
            .executable = "x",
            .cpusets = {},
            .shared_memory_dir = "/dev/shm/outer",
            .usable_cores = 2};
}

TEST(scrub, inside_muster_its_own_defaults_go_and_the_users_stay) {
    environment const users{{"OMPI_MCA_btl", "self,tcp"}};
    auto rank = users;
    set_open_mpi_environment(four_ranks(), 1, rank);
    rank.set("MUSTER_RANK", "1");
    rank.set("PMI_PORT", "127.0.0.1:1");
    EXPECT_EQ(rank.get("OMPI_MCA_btl"), "self,tcp");
    EXPECT_EQ(rank.get("OMPI_MCA_pml"), "ob1");
    EXPECT_EQ(scrubbed(rank), users);
    rank.set("OMPI_MCA_pml", "cm");  // set by the program that is the rank
    EXPECT_EQ(scrubbed(rank).get("OMPI_MCA_pml"), "cm");
}

TEST(open_mpi_environment, gives_each_rank_its_place_and_says_why) {
    environment rank;
    set_open_mpi_environment(four_ranks(), 3, rank);
    EXPECT_EQ(rank.get("OMPI_COMM_WORLD_RANK"), "3");
    EXPECT_EQ(rank.get("OMPI_COMM_WORLD_SIZE"), "4");
    EXPECT_EQ(rank.get("OMPI_MCA_btl_vader_backing_directory"), "/dev/shm/outer");
    EXPECT_EQ(rank.get("OMPI_MCA_mpi_oversubscribe"), "1");
    auto roomy = four_ranks();
    roomy.usable_cores = 4;
    for (auto const& entry : open_mpi_defaults(roomy)) {
        EXPECT_NE(entry.name, "OMPI_MCA_mpi_oversubscribe");
        EXPECT_FALSE(entry.why.empty()) << entry.name;
    }
}

}  // namespace
}  // namespace muster::pmix
