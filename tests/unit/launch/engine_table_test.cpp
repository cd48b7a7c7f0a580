#include "launch/engine/engine_table.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.hpp"
#include "tests/unit/launch/engine_answers.hpp"

namespace muster {
namespace {

TEST(engine, a_command_is_printed_for_a_shell) {
    engine_command const command{{"srun", "--x=a b", "$HOME"},
                                 {{"KEPT", "1"}, {"NEW", "it's"}, {"CHANGED", "2"}},
                                 {{"/t/hosts", "a\nb\n"}, {"/t/it's", "END\nx"}}};
    EXPECT_EQ(shell_text(command, {{"KEPT", "1"}, {"CHANGED", "1"}, {"GONE", "x"}}),
              "cat >/t/hosts <<'END'\na\nb\nEND\n"
              "cat >'/t/it'\\''s' <<'END_'\nEND\nx\nEND_\n"
              "env -u GONE CHANGED=2 'NEW=it'\\''s' srun '--x=a b' '$HOME'\n");
    EXPECT_EQ(shell_text({{"srun"}, {}, {}}, {}), "srun\n");
}

using testing_engines::answers;
using testing_engines::fixture;
using testing_engines::job_on;

std::string failure(engine_job const& job, answers const& a, std::string_view forced = "") {
    try {
        choose_engine(job, a.sources(), forced);
    } catch (error const& e) {
        return e.what();
    }
    return "";
}

answers everything() {
    answers a;
    a.variables = {{"SLURM_JOB_ID", "42"}};
    a.said["srun --version"] = {0, fixture("srun_version_22.05"), ""};
    a.said["srun --mpi=list"] = {0, fixture("srun_mpi_list_22.05"), ""};
    a.said["mpirun --version"] = {0, fixture("mpirun_version_4.1.4"), ""};
    a.said["mpiexec.hydra --version"] = {0, fixture("hydra_version_4.0.2"), ""};
    return a;
}

TEST(engine, the_first_that_can) {
    auto a = everything();
    auto const job = job_on({1, 1}, {4, 4});
    std::vector<std::string> tried;
    EXPECT_EQ(choose_engine(job, a.sources(), "", &tried).name, "srun");
    EXPECT_TRUE(tried.empty());
    a.variables = {};
    EXPECT_EQ(choose_engine(job, a.sources(), "", &tried).name, "mpirun");
    EXPECT_EQ(tried.at(0), "srun: this is no Slurm job (SLURM_JOB_ID is not set)");
    EXPECT_EQ(tried.at(1), "remote: in a Slurm job it is chosen by --engine remote only");
    a.said.erase("mpirun --version");
    EXPECT_EQ(choose_engine(job, a.sources(), "").name, "mpiexec");
}

TEST(engine, another_mpi_is_no_way_into_a_second_component) {
    auto a = everything();
    a.variables = {{"SLURM_JOB_ID", "42"}, {"SLURM_HET_SIZE", "2"}, {"SLURM_JOB_NODELIST_HET_GROUP_0", "n[0-1]"}};
    auto const told = failure(job_on({4, 4, 2}, {4, 4, 4}), a);
    EXPECT_NE(told.find("heterogeneous Slurm job"), std::string::npos) << told;
    EXPECT_EQ(told.find("module load"), std::string::npos) << told;
    EXPECT_NE(told.find("give -H n[0-1]"), std::string::npos) << told;
    a.variables = {};
    a.said.clear();
    EXPECT_NE(failure(job_on({1, 1}, {4, 4}), a).find("module load openmpi"), std::string::npos);
}

TEST(engine, in_Flux_it_is_flux_exec) {
    answers a;
    a.said["flux getattr security.owner"] = {0, std::to_string(::geteuid()) + "\n", ""};
    a.said["mpirun --version"] = {0, fixture("mpirun_version_4.1.4"), ""};
    auto job = job_on({1, 1}, {4, 4}, scheduler_kind::flux);
    EXPECT_EQ(choose_engine(job, a.sources(), "").name, "remote") << "no ssh is needed";
    auto const command = shell_text(choose_engine(job, a.sources(), "").command(job, a.sources()), {});
    EXPECT_NE(command.find("fluxrsh'"), std::string::npos) << command;
    EXPECT_EQ(command.find("--by-scheduler"), std::string::npos) << "standard input gets there";
    auto const by_mpirun = shell_text(choose_engine(job, a.sources(), "mpirun").command(job, a.sources()), {});
    EXPECT_NE(by_mpirun.find("exec /bin/muster fluxrsh \"$@\""), std::string::npos) << by_mpirun;
    EXPECT_NE(by_mpirun.find("plm_rsh_no_tree_spawn 1"), std::string::npos) << by_mpirun;
    a.said["flux getattr security.owner"] = {0, "987654\n", ""};
    EXPECT_NE(failure(job, a, "remote").find("user 987654"), std::string::npos);
}

TEST(engine, pals_where_pbs_has_it) {
    answers a;
    a.said["mpirun --version"] = {0, fixture("mpirun_version_4.1.4"), ""};
    a.said["mpiexec --version"] = {0, "mpiexec version 1.2.12 revision 1ddd57d\n", ""};  // not captured
    auto const job = job_on({1, 1}, {4, 4}, scheduler_kind::pbs);
    EXPECT_EQ(choose_engine(job, a.sources(), "").name, "mpiexec");
    EXPECT_EQ(choose_engine(job, a.sources(), "mpirun").name, "mpirun");
    EXPECT_EQ(choose_engine(job_on({1, 1}, {4, 4}, scheduler_kind::hostfile), a.sources(), "").name, "mpirun");
}

TEST(engine, remote_for_programs_of_no_mpi_and_where_nothing_else_is) {
    auto a = everything();
    a.variables = {};
    a.said["ssh -V"] = {0, "", "OpenSSH_9.2p1"};
    auto job = job_on({1, 1}, {4, 4}, scheduler_kind::hostfile);
    EXPECT_EQ(choose_engine(job, a.sources(), "").name, "remote");
    EXPECT_EQ(choose_engine(job_on({1, 1}, {4, 4}, scheduler_kind::pbs), a.sources(), "").name, "remote");
    EXPECT_EQ(choose_engine(job_on({1, 1}, {4, 4}, scheduler_kind::cobalt), a.sources(), "").name, "mpirun");
    std::vector<std::string> tried;
    auto loads_mpi = job;  // as Python tells it
    loads_mpi.program = "/usr/bin/python3";
    loads_mpi.command = {"/usr/bin/python3", "-c", "import mpi4py"};
    auto const question =
        " -c import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.Get_library_version())";
    for (auto const* version : {"Open MPI v4.1.4", "MPICH Version: 5.0.2"}) {
        auto b = a;
        b.said[loads_mpi.program + question] = {0, version, ""};
        bool const open_mpi = std::string(version).starts_with("Open");
        EXPECT_EQ(choose_engine(loads_mpi, b.sources(), "", &tried).name, open_mpi ? "mpirun" : "mpiexec");
        b.said.erase(open_mpi ? "mpirun --version" : "mpiexec.hydra --version");
        EXPECT_EQ(choose_engine(loads_mpi, b.sources(), "").name, "remote") << "it serves both";
    }
    a.variables = {{"OMPI_MCA_plm_rsh_agent", "rsh"}};
    EXPECT_EQ(choose_engine(job, a.sources(), "").name, "mpirun") << "which knows how to reach the hosts";
    a.variables = {};
    a.said.erase("ssh -V");
    EXPECT_EQ(choose_engine(job, a.sources(), "").name, "mpirun");
    job.remote_shell = "rsh";
    EXPECT_EQ(choose_engine(job, a.sources(), "").name, "remote");
}

TEST(engine, many_hosts_want_a_tree) {
    answers a;
    a.said["ssh -V"] = {0, "", "OpenSSH_9.2p1"};
    a.said["mpirun --version"] = {0, fixture("mpirun_version_4.1.4"), ""};
    auto const few = job_on(std::vector<int>(3000, 1), std::vector<int>(3000, -1), scheduler_kind::hostfile);
    EXPECT_EQ(choose_engine(few, a.sources(), "").name, "remote");
    EXPECT_EQ(note_on_size(few, a.sources(), "remote"), "");
    auto const many = job_on(std::vector<int>(3001, 1), std::vector<int>(3001, -1), scheduler_kind::hostfile);
    EXPECT_EQ(choose_engine(many, a.sources(), "").name, "mpirun");
    EXPECT_EQ(note_on_size(many, a.sources(), "mpirun").find("3001 hosts: mpirun starts them by a tree"), 0u);
    a.said.erase("mpirun --version");
    EXPECT_EQ(choose_engine(many, a.sources(), "").name, "remote") << "the last resort";
    EXPECT_EQ(note_on_size(many, a.sources(), "remote").find("3001 hosts: remote tells each from one process"), 0u);
    auto mpi = few;
    mpi.map.ranks_per_node.assign(3000, 8);
    EXPECT_EQ(note_on_size(mpi, a.sources(), "remote"), "") << "which uses no MPI";
}

TEST(engine, forced) {
    auto a = everything();
    auto const job = job_on({1, 1}, {4, 4});
    EXPECT_EQ(choose_engine(job, a.sources(), "mpiexec").name, "mpiexec");
    EXPECT_EQ(failure(job, a, "mpirum"), "--engine mpirum is unknown; use embedded, srun, remote, mpirun, mpiexec");
    EXPECT_EQ(failure(job, a, "embedded"),
              "--engine embedded starts ranks on this node only, and this job has 2; leave --engine out, or use fewer nodes "
              "(--nodes 1)");
    a.variables = {};
    EXPECT_EQ(failure(job, a, "srun"),
              "--engine srun cannot run here: this is no Slurm job (SLURM_JOB_ID is not set); without --engine muster takes one "
              "that can");
}

TEST(engine, none_with_every_reason_and_one_way_out) {
    EXPECT_EQ(failure(job_on({1, 1}, {4, 4}), {}),
              "no engine can start the ranks on 2 nodes:\n"
              "  srun: this is no Slurm job (SLURM_JOB_ID is not set)\n"
              "  remote: there is no srun on PATH\n"
              "  mpirun: there is no mpirun of Open MPI and no prterun on PATH\n"
              "  mpiexec: there is no mpiexec of MPICH or PALS on PATH\n"
              "load the MPI that the program is built with, so that its mpirun or mpiexec is on PATH (module load openmpi)");
}

}  // namespace
}  // namespace muster
