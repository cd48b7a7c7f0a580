#include "launch/engine/engines.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "launch/engine/mpi_family.hpp"
#include "tests/unit/launch/engine_answers.hpp"

namespace muster {
namespace {

using testing_engines::answers;
using testing_engines::fixture;
using testing_engines::job_on;
using words = std::vector<std::string>;

answers hydra() {
    answers a;
    a.said["mpiexec --version"] = {0, fixture("hydra_version_4.0.2"), ""};
    return a;
}

/// Not captured: written after what PALS is said to print.
answers pals() {
    answers a;
    a.said["mpiexec --version"] = {0, "mpiexec version 1.2.12 revision 1ddd57d\n", ""};
    return a;
}

std::string failure(engine_job const& job, answers const& a) {
    try {
        mpiexec_command(job, a.sources());
    } catch (error const& e) {
        EXPECT_EQ(e.code(), errc::placement);
        return e.what();
    }
    return "";
}

TEST(mpiexec_engine, whose_it_is) {
    auto const found = read_mpiexec_version("mpiexec", fixture("hydra_version_4.0.2"));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->from, mpiexec_program::maker::hydra);
    EXPECT_EQ(found->version, (program_version{4, 0}));
    EXPECT_EQ(found->launchers, (words{"ssh", "rsh", "fork", "slurm", "ll", "lsf", "sge", "manual", "persist"}));
    EXPECT_EQ(read_mpiexec_version("mpiexec", fixture("mpiexec_version_openmpi_4.1.4")), std::nullopt);
    EXPECT_EQ(read_mpiexec_version("mpiexec", "mpiexec version 1.2.12 revision 1ddd57d")->from, mpiexec_program::maker::pals);
    EXPECT_EQ(read_mpiexec_version("mpiexec", ""), std::nullopt);
}

TEST(mpiexec_engine, hydra_takes_hosts_in_runs) {
    auto job = job_on({2, 0, 3}, {-1, -1, -1}, scheduler_kind::hostfile);
    job.shim_variables = {"MUSTER_LAUNCHER", "MUSTER_TOKEN"};
    auto const command = mpiexec_command(job, hydra().sources());
    EXPECT_EQ(command.argv, (words{"mpiexec", "-launcher", "ssh", "-f", "/scratch/mpiexec.hosts", "-n", "5", "-bind-to", "none",
                                   "-genvlist", "MUSTER_LAUNCHER,MUSTER_TOKEN,MUSTER_LOG,PATH,LD_LIBRARY_PATH", "/bin/muster",
                                   "shim", "--guarded", "a.out"}));
    EXPECT_EQ(command.files.at(0).second, "n0:2\nn2:3\n");
    EXPECT_EQ(command.speaks, wire_up::pmi);
    job.map.order = map_policy::node;
    EXPECT_EQ(mpiexec_command(job, hydra().sources()).files.at(0).second, "n0:1\nn2:1\nn0:1\nn2:2\n");
    job.probe = true;
    EXPECT_EQ(mpiexec_command(job, hydra().sources()).files.at(0).second, "n0:1\nn2:1\n");
}

TEST(mpiexec_engine, hydra_starts_its_daemons_as_the_scheduler_wants_it) {
    auto pbs_job = job_on({1, 1}, {-1, -1}, scheduler_kind::pbs);
    pbs_job.variables = {{"CUDA_VISIBLE_DEVICES", "GPU-of-this-host"}, {"TMPDIR", "/var/tmp/pbs.7"}, {"HF_TOKEN", "secret"}};
    auto const pbs = mpiexec_command(pbs_job, hydra().sources());
    EXPECT_EQ(pbs.variables,
              (environment{{"CUDA_VISIBLE_DEVICES", "GPU-of-this-host"}, {"HYDRA_LAUNCHER_EXTRA_ARGS", "/scratch/tmrsh"}}));
    EXPECT_EQ(words(pbs.argv.begin() + 1, pbs.argv.begin() + 5), (words{"-launcher", "rsh", "-launcher-exec", "/bin/sh"}));
    EXPECT_EQ(pbs.variables.get("HYDRA_LAUNCHER_EXTRA_ARGS"), "/scratch/tmrsh");
    EXPECT_EQ(pbs.files.at(1), (std::pair<std::string, std::string>("/scratch/tmrsh", "exec /bin/muster tmrsh \"$@\"\n")));
    auto job = job_on({1, 1}, {4, 4});
    job.variables = {
        {"SLURM_JOB_ID", "42"}, {"SLURM_NTASKS_PER_NODE", "4"}, {"CUDA_VISIBLE_DEVICES", "0"}, {"HF_TOKEN", "secret"}};
    auto const slurm = mpiexec_command(job, hydra().sources());
    EXPECT_EQ(words(slurm.argv.begin() + 1, slurm.argv.begin() + 3), (words{"-launcher", "slurm"}));
    EXPECT_EQ(slurm.variables, (environment{{"SLURM_JOB_ID", "42"}, {"SLURM_OVERLAP", "1"}, {"SLURM_GRES", "gpu:4"}}));
}

TEST(mpiexec_engine, hydra_starts_its_daemons_by_the_users_remote_shell) {
    for (auto const scheduler : {scheduler_kind::hostfile, scheduler_kind::pbs}) {
        auto job = job_on({1, 1}, {-1, -1}, scheduler);
        job.remote_shell = "'my rsh' -l me";
        auto const command = mpiexec_command(job, hydra().sources());
        EXPECT_EQ(words(command.argv.begin() + 1, command.argv.begin() + 5),
                  (words{"-launcher", "ssh", "-launcher-exec", "my rsh"}));
        EXPECT_EQ(command.variables, (environment{{"HYDRA_LAUNCHER_EXTRA_ARGS", "-l me"}}));
    }
    auto job = job_on({1, 1}, {-1, -1}, scheduler_kind::hostfile);
    job.remote_shell = "rsh";
    job.variables = {{"HYDRA_LAUNCHER_EXEC", "/bin/agent"}, {"HYDRA_LAUNCHER_EXTRA_ARGS", "-v"}};
    auto const own = mpiexec_command(job, hydra().sources());
    EXPECT_EQ(own.variables, job.variables);
    EXPECT_EQ(own.argv.at(3), "-f");
    job = job_on({1, 1}, {4, 4});
    job.remote_shell = "rsh";
    EXPECT_EQ(mpiexec_command(job, hydra().sources()).argv.at(2), "slurm");
}

// From 23.11 on every job of Slurm has words for a Hydra that starts its proxies by srun; ssh would take them for its own.
TEST(mpiexec_engine, words_for_srun_are_given_to_srun_alone) {
    auto job = job_on({1, 1}, {4, 4});
    job.variables = {{"SLURM_JOB_ID", "42"}, {"HYDRA_BOOTSTRAP", "slurm"}, {"HYDRA_LAUNCHER_EXTRA_ARGS", "--external-launcher"}};
    EXPECT_EQ(mpiexec_command(job, hydra().sources()).variables.get("HYDRA_LAUNCHER_EXTRA_ARGS"), "--external-launcher");
    auto without_slurm = hydra();
    auto& said = without_slurm.said["mpiexec --version"].out;
    said.replace(said.find(" slurm "), 7, " ");
    for (auto const* shell : {"", "rsh", "rsh -l me"}) {
        job.remote_shell = shell;
        auto const command = mpiexec_command(job, without_slurm.sources());
        EXPECT_EQ(command.argv.at(2), "ssh") << shell;
        EXPECT_FALSE(command.variables.has("HYDRA_BOOTSTRAP")) << shell;
        EXPECT_EQ(command.variables.get_or("HYDRA_LAUNCHER_EXTRA_ARGS", "none"),
                  std::string(shell) == "rsh -l me" ? "-l me" : "none")
            << shell;
    }
    job.remote_shell = "";
    job.variables.set("HYDRA_LAUNCHER_EXTRA_ARGS", "-p 2222 --external-launcher");
    EXPECT_EQ(mpiexec_command(job, without_slurm.sources()).variables.get("HYDRA_LAUNCHER_EXTRA_ARGS"), "-p 2222")
        << "the user's";
}

TEST(mpiexec_engine, pals_by_its_documentation) {
    auto const command = mpiexec_command(job_on({4, 0, 4}, {4, 4, 4}, scheduler_kind::pbs), pals().sources());
    EXPECT_EQ(command.argv, (words{"mpiexec", "--hostfile", "/scratch/mpiexec.hosts", "-n", "8", "--ppn", "4", "--cpu-bind",
                                   "none", "--envall", "/bin/muster", "shim", "--guarded", "a.out"}));
    EXPECT_EQ(command.files.at(0).second, "n0\nn2\n");
}

TEST(mpiexec_engine, pals_refuses_layouts_it_cannot_say) {
    EXPECT_EQ(
        failure(job_on({4, 3}, {4, 4}, scheduler_kind::pbs), pals()),
        "PALS' mpiexec puts the same number of ranks on every node, and 7 ranks on 2 nodes do not divide so; use a number of "
        "ranks that does, or --ranks-per-node N");
    auto job = job_on({4, 4}, {4, 4}, scheduler_kind::pbs);
    job.map.order = map_policy::node;
    EXPECT_EQ(failure(job, pals()), "PALS' mpiexec numbers ranks node by node; leave --map-by node out");
    job.probe = true;
    EXPECT_EQ(failure(job, pals()), "");
}

TEST(mpiexec_engine, what_is_on_PATH) {
    auto const job = job_on({1, 1}, {-1, -1}, scheduler_kind::hostfile);
    answers a;
    EXPECT_EQ(mpiexec_unavailable(job, a.sources()), "there is no mpiexec of MPICH or PALS on PATH");
    a.said["mpiexec --version"] = {0, fixture("mpiexec_version_openmpi_4.1.4"), ""};
    EXPECT_EQ(mpiexec_unavailable(job, a.sources()), "mpiexec is Open MPI's, which is the engine mpirun");
    a.said["mpiexec.hydra --version"] = {0, "Intel(R) MPI Library for Linux* OS, Version 2021.9\n", ""};
    EXPECT_EQ(mpiexec_unavailable(job, a.sources()),
              "mpiexec is Open MPI's, which is the engine mpirun; mpiexec.hydra is Intel MPI's, which muster does not know");
    a.said["mpiexec.hydra --version"] = {0, fixture("hydra_version_4.0.2"), ""};
    EXPECT_EQ(mpiexec_unavailable(job, a.sources()), std::nullopt);
}

}  // namespace
}  // namespace muster
