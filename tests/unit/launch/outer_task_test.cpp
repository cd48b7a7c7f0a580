#include "launch/engine/outer_task.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace muster {
namespace {

environment const srun_task{{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}};

environment task_with(environment variables, std::vector<std::pair<std::string, std::string>> const& more) {
    for (auto const& [name, value] : more) variables.set(name, value);
    return variables;
}

TEST(slurm_names, of_an_older_slurm_are_todays) {
    auto const now = with_present_slurm_names({{"SLURM_JOBID", "7"},
                                               {"SLURM_NODELIST", "n1"},
                                               {"SLURM_PACK_SIZE", "2"},
                                               {"SLURM_JOB_NODELIST_PACK_GROUP_1", "n2"},
                                               {"SLURM_JOB_NUM_NODES", "3"},
                                               {"SLURM_NNODES", "1"}});
    EXPECT_EQ(now.get_or("SLURM_JOB_ID", ""), "7");
    EXPECT_EQ(now.get_or("SLURM_JOB_NODELIST", ""), "n1");
    EXPECT_EQ(now.get_or("SLURM_HET_SIZE", ""), "2");
    EXPECT_EQ(now.get_or("SLURM_JOB_NODELIST_HET_GROUP_1", ""), "n2");
    EXPECT_EQ(now.get_or("SLURM_JOB_NUM_NODES", ""), "3") << "what is there stays";
    environment const none{{"SLURM_NODELIST", "n1"}};
    EXPECT_EQ(with_present_slurm_names(none), none);
}

TEST(outer_task, of_each_launcher) {
    EXPECT_EQ(find_outer_task(srun_task), (outer_task{"srun", 1, 2}));
    EXPECT_EQ(find_outer_task(task_with(srun_task, {{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "slurm.pmix.7.0"}})),
              (outer_task{"srun", 1, 2}));
    EXPECT_EQ(find_outer_task(task_with(srun_task, {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_JOBID", "7.0"}})),
              (outer_task{"srun", 1, 2}));
    EXPECT_EQ(find_outer_task({{"PMIX_RANK", "0"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}}),
              (outer_task{"mpirun", 0, 4}));
    EXPECT_EQ(find_outer_task({{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}, {"HYDI_CONTROL_FD", "5"}}), (outer_task{"mpiexec", 2, 3}));
    EXPECT_EQ(find_outer_task({{"MUSTER_RANK", "1"}, {"MUSTER_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_SIZE", "2"}}),
              (outer_task{"muster run", 1, 2}));
}

TEST(outer_task, of_flux_run) {
    environment const task{{"FLUX_JOB_ID", "f3"}, {"FLUX_TASK_RANK", "1"}, {"PMI_FD", "9"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "4"}};
    EXPECT_EQ(find_outer_task(task), (outer_task{"flux run", 1, 4}));
    EXPECT_EQ(find_outer_task(task_with(task, {{"PALS_RANKID", "1"}})), (outer_task{"flux run", 1, 4}));
    try {
        refuse_outer_task(task);
        ADD_FAILURE() << "it was not refused";
    } catch (error const& e) {
        EXPECT_EQ(e.what(),
                  std::string("this is task 1 of 4 of a flux run, and each of them would start the whole job; start muster once, "
                              "in the script of flux batch or the shell of flux alloc, or give --nested if each is to start its "
                              "own ranks"));
    }
}

TEST(outer_task, not_where_a_process_stands_alone) {
    EXPECT_EQ(find_outer_task({}), std::nullopt);
    EXPECT_EQ(find_outer_task(task_with(srun_task, {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}})), std::nullopt);
    // A batch script, and the step of salloc's own shell.
    EXPECT_EQ(find_outer_task({{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}), std::nullopt);
    EXPECT_EQ(
        find_outer_task({{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "4294967290"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}),
        std::nullopt);
    // srun -n2 --pty bash: the first task is the user's shell, the second one's input ends at once.
    EXPECT_EQ(find_outer_task(task_with(srun_task, {{"SLURM_PROCID", "0"}, {"SLURM_PTY_PORT", "4"}})), std::nullopt);
    EXPECT_EQ(find_outer_task(task_with(srun_task, {{"SLURM_PTY_PORT", "4"}})), (outer_task{"srun", 1, 2}));
    EXPECT_EQ(find_outer_task({{"PMI_RANK", "1"}, {"PMI_SIZE", "7"}, {"OMPI_COMM_WORLD_SIZE", "12"}, {"PMIX_RANK", "3"}}),
              std::nullopt);
}

TEST(outer_task, variables_of_the_task_that_submitted_this_job_are_taken_out) {
    EXPECT_EQ(without_submitters_task(srun_task, ""), srun_task);
    EXPECT_EQ(without_submitters_task(srun_task, "7.0"), srun_task);
    // sbatch sets SLURM_PROCID and SLURM_JOB_ID anew, and no step.
    auto const script = task_with(srun_task, {{"SLURM_JOB_ID", "8"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}});
    environment const own{{"SLURM_JOB_ID", "8"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}};
    EXPECT_EQ(without_submitters_task(script, "8.batch"), own);
    EXPECT_EQ(without_submitters_task(task_with(script, {{"MUSTER_RANK", "0"}, {"MUSTER_WORLD_SIZE", "2"}, {"PMIX_RANK", "0"}}),
                                      "8.batch"),
              own);
    auto const by_mpirun = task_with(script, {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}});
    EXPECT_EQ(find_outer_task(without_submitters_task(by_mpirun, "8.batch")), (outer_task{"mpirun", 1, 4}))
        << "mpirun in the script";
    EXPECT_EQ(find_outer_task(without_submitters_task(srun_task, "9.0")), std::nullopt) << "a shell of salloc in a task";
}

}  // namespace
}  // namespace muster
