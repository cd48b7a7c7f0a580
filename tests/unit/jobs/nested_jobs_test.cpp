// What a job finds is the same wherever it was submitted from: every pair of an outer and an inner kind of job. sbatch and salloc pass
// on the variables of the outer one, and Slurm sets anew those of what the inner one asks for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "launch/engine/outer_task.hpp"
#include "launch/jobs/submission_variables.hpp"
#include "launch/scheduler/read_allocation.hpp"
#include "launch/scheduler/slurm/slurm_job.hpp"

namespace muster {
namespace {

struct kind {
    std::string name;
    environment variables;
    std::string record;  ///< scontrol's
};

std::string record_of(std::string const& job, std::string const& rest) {
    return fmt::format("JobId={} JobName=x {} JobState=RUNNING Restarts=0 EndTime=1795250041 NumNodes=2 CPUs/Task=1 {}\n", job,
                       job == "50" ? "ArrayJobId=49 ArrayTaskId=3" : "", rest);
}

environment over(environment variables, environment const& more) {
    for (auto const& [name, value] : more) variables.set(name, value);
    return variables;
}

/// What Slurm sets for every job.
environment of_every_job(std::string const& id, std::string const& nodes, int count, std::string const& tasks,
                         std::string const& cpus) {
    return {{"SLURM_JOB_ID", id},
            {"SLURM_JOBID", id},
            {"SLURM_JOB_NODELIST", nodes},
            {"SLURM_JOB_NUM_NODES", std::to_string(count)},
            {"SLURM_TASKS_PER_NODE", tasks},
            {"SLURM_JOB_CPUS_PER_NODE", cpus},
            {"SLURMD_NODENAME", "n1"}};
}

std::vector<kind> kinds() {
    auto const nodes = [](std::string const& names, int cpus, std::string const& gpus) {
        return fmt::format("Nodes={} CPU_IDs=0-{} Mem=0 GRES={}", names, cpus - 1, gpus);
    };
    auto const two = [](std::string const& id) { return of_every_job(id, "n[1-2]", 2, "4(x2)", "4(x2)"); };
    environment const four_here{{"SLURM_GPUS_ON_NODE", "4"}, {"SLURM_JOB_GPUS", "0,1,2,3"}, {"CUDA_VISIBLE_DEVICES", "0,1,2,3"}};
    environment const one_here{{"SLURM_GPUS_ON_NODE", "1"}, {"SLURM_JOB_GPUS", "2"}, {"CUDA_VISIBLE_DEVICES", "2"}};
    return {
        {"cpus", of_every_job("41", "n1", 1, "1", "4"), record_of("41", nodes("n1", 4, ""))},
        {"tasks",
         over(of_every_job("42", "n1", 1, "3", "6"),
              {{"SLURM_NTASKS", "3"}, {"SLURM_NPROCS", "3"}, {"SLURM_CPUS_PER_TASK", "2"}}),
         "JobId=42 JobName=x JobState=RUNNING Restarts=0 EndTime=1795250041 CPUs/Task=2 " + nodes("n1", 6, "") + "\n"},
        {"by gres", over(two("43"), four_here), record_of("43", "JOB_GRES=gpu:8 " + nodes("n[1-2]", 4, "gpu:4(IDX:0-3)"))},
        {"by node",
         over(over(two("44"), one_here), {{"SLURM_GPUS_PER_NODE", "1"}, {"SLURM_NTASKS_PER_NODE", "4"}, {"SLURM_NTASKS", "8"}}),
         record_of("44", "JOB_GRES=gpu:2 " + nodes("n[1-2]", 4, "gpu:1(IDX:2)"))},
        {"by job", over(over(of_every_job("45", "n[1-2]", 2, "4,1", "4,1"), four_here), {{"SLURM_GPUS", "5"}}),
         record_of("45", "JOB_GRES=gpu:5 " + nodes("n1", 4, "gpu:4(IDX:0-3)") + " " + nodes("n2", 1, "gpu:1(IDX:0)"))},
        {"by task",
         over(over(of_every_job("46", "n[1-2]", 2, "1(x2)", "1(x2)"), one_here),
              {{"SLURM_GPUS_PER_TASK", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_TRES_PER_TASK", "gres/gpu=1"}}),
         record_of("46", "JOB_GRES=gpu:2 " + nodes("n[1-2]", 1, "gpu:1(IDX:2)"))},
        {"salloc", two("47"), record_of("47", "JOB_GRES=gpu:4 " + nodes("n[1-2]", 4, "gpu:2(IDX:0-1)"))},
        {"heterogeneous",
         over(of_every_job("48", "n1", 1, "1", "1"), {{"SLURM_HET_SIZE", "2"},
                                                      {"SLURM_JOB_ID_HET_GROUP_0", "48"},
                                                      {"SLURM_JOB_ID_HET_GROUP_1", "148"},
                                                      {"SLURM_JOB_NODELIST_HET_GROUP_0", "n1"},
                                                      {"SLURM_JOB_NODELIST_HET_GROUP_1", "n[2-3]"},
                                                      {"SLURM_JOB_NUM_NODES_HET_GROUP_0", "1"},
                                                      {"SLURM_JOB_NUM_NODES_HET_GROUP_1", "2"},
                                                      {"SLURM_JOB_CPUS_PER_NODE_HET_GROUP_0", "1"},
                                                      {"SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1", "2(x2)"},
                                                      {"SLURM_TASKS_PER_NODE_HET_GROUP_0", "1"},
                                                      {"SLURM_TASKS_PER_NODE_HET_GROUP_1", "2(x2)"}}),
         "JobId=48 HetJobId=48 Restarts=0 EndTime=1795250041 " + nodes("n1", 1, "") +
             "\nJobId=148 HetJobId=48 EndTime=1795250041 JOB_GRES=gpu:4 " + nodes("n[2-3]", 2, "gpu:2(IDX:0-1)") + "\n"},
        {"array",
         over(over(two("50"), four_here),
              {{"SLURM_ARRAY_JOB_ID", "49"}, {"SLURM_ARRAY_TASK_ID", "3"}, {"SLURM_ARRAY_TASK_COUNT", "4"}}),
         record_of("50", "JOB_GRES=gpu:8 " + nodes("n[1-2]", 4, "gpu:4(IDX:0-3)"))},
        {"requeued", over(two("51"), {{"SLURM_RESTART_COUNT", "2"}}),
         "JobId=51 JobName=x JobState=RUNNING Restarts=2 EndTime=1795250041 CPUs/Task=1 " + nodes("n[1-2]", 4, "") + "\n"},
    };
}

allocation found_in(environment const& variables, kind const& inner) {
    scheduler_sources const sources{
        variables, [](auto const&) { return std::nullopt; },
        [&](std::vector<std::string> const& argv) {
            if (argv.back() == "config") return command_output{0, "GresTypes = gpu\n", ""};
            auto const id = inner.variables.get_or("SLURM_JOB_ID", "");
            bool const known = argv.back() == id || (argv.back() == "49_3" && id == "50");
            return known ? command_output{0, inner.record, ""} : command_output{1, "", "Invalid job id\n"};
        },
        [] { return node{}; }};
    return read_allocation(sources, {});
}

environment corrected(environment variables, allocation const& given) {
    for (auto const& [name, value] : given.corrections)
        if (value)
            variables.set(name, *value);
        else
            variables.unset(name);
    return variables;
}

TEST(nested_jobs, the_inner_job_finds_what_it_has_whatever_the_outer_one_is) {
    for (auto const& inner : kinds()) {
        auto const alone = found_in(inner.variables, inner);
        EXPECT_EQ(alone.corrections.size(), 0u) << inner.name;
        for (auto const& outer : kinds()) {
            if (outer.name == inner.name) continue;
            SCOPED_TRACE(fmt::format("a job {} within a job {}", inner.name, outer.name));
            auto const variables = over(outer.variables, inner.variables);
            auto nested = found_in(variables, inner);
            auto const own = corrected(variables, nested);
            nested.corrections.clear();
            EXPECT_EQ(nested, alone);
            for (auto const* name : {"SLURM_HET_SIZE", "SLURM_JOB_ID_HET_GROUP_1", "SLURM_ARRAY_TASK_ID", "SLURM_RESTART_COUNT"})
                EXPECT_EQ(own.get(name), inner.variables.get(name)) << name;
            EXPECT_TRUE(alone.nodes.front().gpus != 0 || !own.has("CUDA_VISIBLE_DEVICES"));
        }
    }
}

TEST(nested_jobs, what_they_find) {
    auto const all = kinds();
    auto const gpus = [&](std::size_t i) {
        std::vector<std::optional<int>> found;
        for (auto const& n : found_in(all[i].variables, all[i]).nodes) found.push_back(n.gpus);
        return found;
    };
    EXPECT_THAT(gpus(0), testing::ElementsAre(0));
    EXPECT_THAT(gpus(2), testing::ElementsAre(4, 4));
    EXPECT_THAT(gpus(3), testing::ElementsAre(1, 1));
    EXPECT_THAT(gpus(4), testing::ElementsAre(4, 1));
    EXPECT_THAT(gpus(7), testing::ElementsAre(0, 2, 2));
    EXPECT_EQ(found_in(all[9].variables, all[9]).restarts, 2);
}

TEST(nested_jobs, tasks_that_slurm_counts_by_the_outer_jobs_request_do_not_count) {
    auto inner = kinds()[2];
    inner.record = record_of("43", "NumTasks=2 JOB_GRES=gpu:8 Nodes=n[1-2] CPU_IDs=0 Mem=0 GRES=gpu:4(IDX:0-3)");
    for (auto const* name : {"SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"}) inner.variables.set(name, "1(x2)");
    auto const alone = found_in(inner.variables, inner);
    inner.variables.set("SLURM_NTASKS_PER_NODE", "4");
    inner.variables.set("SLURM_TASKS_PER_NODE", "4(x2)");
    EXPECT_EQ(found_in(inner.variables, inner), alone);
    EXPECT_EQ(alone.nodes.front().slots, 1);
}

TEST(nested_jobs, where_scontrol_does_not_answer_variables_that_contradict_each_other_do_not_count) {
    environment variables{{"SLURM_JOB_ID", "9"},
                          {"SLURM_JOB_NODELIST", "n[1-2]"},
                          {"SLURM_JOB_CPUS_PER_NODE", "4(x2)"},
                          {"SLURM_GPUS_ON_NODE", "4"},
                          {"SLURM_GPUS_PER_NODE", "1"}};
    kind const silent{"silent", {}, ""};
    EXPECT_EQ(found_in(variables, silent).nodes[1].gpus, 4);
    variables.set("SLURM_GPUS_PER_NODE", "4");
    EXPECT_EQ(found_in(variables, silent).nodes[1].gpus, 4);
}

TEST(nested_jobs, a_users_own_list_of_gpus_stays_his) {
    auto inner = kinds().front();
    inner.variables.set("CUDA_VISIBLE_DEVICES", "1");
    EXPECT_EQ(found_in(inner.variables, inner).corrections.size(), 0u);
    inner.record = record_of("41", "JOB_GRES=shard:2 Nodes=n1 CPU_IDs=0-3 Mem=0 GRES=shard:2");
    inner.variables.set("SLURM_JOB_GPUS", "1");
    EXPECT_EQ(found_in(inner.variables, inner).corrections.size(), 0u) << "a part of a GPU";
}

TEST(nested_jobs, gpu_numbers_of_a_record) {
    EXPECT_THAT(gres_gpu_ids("gpu:a100:2(IDX:0,2),gpu:h100:1(IDX:3),nic:1(IDX:7)"), testing::ElementsAre(0, 2, 3));
    EXPECT_THAT(gres_gpu_ids("gpu:4(IDX:N/A)"), testing::IsEmpty());
    EXPECT_THAT(gres_gpu_ids("gpu:4"), testing::IsEmpty());
    EXPECT_THAT(gres_gpu_ids("gpu:4(IDX:0-3"), testing::IsEmpty());
}

TEST(nested_jobs, a_job_is_submitted_without_the_numbers_of_the_one_around_it) {
    environment const inside{{"SLURM_JOB_ID", "7"},
                             {"SLURM_HET_SIZE", "2"},
                             {"SLURM_ARRAY_TASK_ID", "3"},
                             {"SLURM_CONF", "/etc/slurm"},
                             {"SLURM_JOB_GPUS", "0"},
                             {"CUDA_VISIBLE_DEVICES", "0"},
                             {"MUSTER_CHAIN_LINK", "2"},
                             {"MUSTER_ARRAY_INDEX", "3"},
                             {"MUSTER_SYNC_DIR", "/tmp/x"},
                             {"MUSTER_RANK", "0"},
                             {"MUSTER_WORLD_SIZE", "2"},
                             {"PMIX_RANK", "0"},
                             {"PATH", "/bin"},
                             {"MUSTER_SITE", "generic-slurm"}};
    EXPECT_EQ(submission_variables(inside),
              (environment{{"SLURM_CONF", "/etc/slurm"}, {"PATH", "/bin"}, {"MUSTER_SITE", "generic-slurm"}}));
    environment const outside{
        {"CUDA_VISIBLE_DEVICES", "0"}, {"PATH", "/bin"}, {"SLURM_CONF", "/etc/slurm"}, {"SLURM_CPU_BIND", "none"}};
    EXPECT_EQ(submission_variables(outside), outside) << "a user's own wishes outside of any job";
    environment const pbs{
        {"PBS_JOBID", "7.s"}, {"PBS_ARRAY_INDEX", "2"}, {"PBS_CONF_FILE", "/etc/pbs.conf"}, {"MUSTER_CHAIN_START", "2"}};
    EXPECT_EQ(submission_variables(pbs), (environment{{"PBS_CONF_FILE", "/etc/pbs.conf"}}));
}

/// The variables of a launcher's task.
std::vector<std::pair<std::string, environment>> launchers_tasks() {
    return {
        {"muster run", {{"MUSTER_RANK", "0"}, {"MUSTER_WORLD_SIZE", "2"}, {"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "muster.1"}}},
        {"mpirun", {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "1"}}},
        {"mpiexec", {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"HYDI_CONTROL_FD", "5"}}},
        {"PALS", {{"PALS_RANKID", "0"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}}};
}

TEST(nested_jobs, a_launchers_task_that_submits_a_job_is_no_task_of_it) {
    for (auto const& base : {environment{{"SLURM_JOB_ID", "8"}, {"SLURM_NTASKS", "4"}, {"PATH", "/bin"}},
                             environment{{"PBS_JOBID", "8.server"}, {"PBS_NODEFILE", "/f"}, {"PATH", "/bin"}}}) {
        std::string const step = base.has("SLURM_JOB_ID") ? "8.batch" : "";
        for (auto const& [launcher, task] : launchers_tasks()) {
            SCOPED_TRACE(launcher);
            auto const script = over(base, task);
            EXPECT_EQ(without_submitters_task(script, step, script), base);
            EXPECT_EQ(find_outer_task(without_submitters_task(script, step, script)), std::nullopt);
            for (auto const& [inner_launcher, inner_task] : launchers_tasks()) {
                SCOPED_TRACE(inner_launcher);
                // A launcher in the job sets a rank of its own, on top of what was left.
                auto own = over(script, inner_task);
                for (auto const* name : {"PMIX_NAMESPACE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MUSTER_WORLD_SIZE"})
                    if (inner_task.has(name)) own.set(name, "4");
                EXPECT_NE(find_outer_task(without_submitters_task(own, step, script)), std::nullopt);
            }
        }
    }
}

TEST(nested_jobs, a_shell_of_salloc_within_a_job_has_no_gpus_of_that) {
    environment const shell{{"SLURM_JOB_ID", "8"},    {"SLURM_JOB_NODELIST", "n2"}, {"SLURM_TASK_PID", "77"},
                            {"SLURM_JOB_GPUS", "0"},  {"SLURM_GPUS_ON_NODE", "1"},  {"CUDA_VISIBLE_DEVICES", "0"},
                            {"SLURMD_NODENAME", "n1"}};
    EXPECT_EQ(without_submitters_task(shell, "7.batch"), (environment{{"SLURM_JOB_ID", "8"}, {"SLURM_JOB_NODELIST", "n2"}}));
    EXPECT_EQ(without_submitters_task(shell, "8.batch"), without_submitters_task(shell, "8.batch", shell));
    EXPECT_TRUE(without_submitters_task(shell, "8.batch").has("CUDA_VISIBLE_DEVICES"));
}

TEST(nested_jobs, a_pbs_job_submitted_from_a_slurm_job_is_a_pbs_job) {
    environment const script{
        {"PBS_JOBID", "8.server"}, {"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n2"}, {"SLURM_CONF", "/c"}};
    EXPECT_EQ(without_submitters_task(script, "", script), (environment{{"PBS_JOBID", "8.server"}, {"SLURM_CONF", "/c"}}));
}

}  // namespace
}  // namespace muster
