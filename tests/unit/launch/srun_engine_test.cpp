#include "launch/engine/engines.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "launch/engine/engine_job.hpp"
#include "launch/engine/mpi_family.hpp"
#include "launch/scheduler/slurm/slurm_job.hpp"
#include "tests/unit/launch/engine_answers.hpp"

namespace muster {
namespace {

using testing_engines::answers;
using testing_engines::fixture;
using testing_engines::job_on;

answers slurm_22_05() {
    answers a;
    a.variables = {{"SLURM_JOB_ID", "42"}};
    a.said["srun --version"] = {0, fixture("srun_version_22.05"), ""};
    a.said["srun --mpi=list"] = {0, fixture("srun_mpi_list_22.05"), ""};
    a.said["scontrol show config"] = {0, fixture("scontrol_config_22.05"), ""};
    return a;
}

TEST(srun_engine, lists_of_mpi_plugins_in_all_forms) {
    EXPECT_EQ(parse_mpi_list(fixture("srun_mpi_list_22.05")),
              (std::vector<std::string>{"pmix", "none", "cray_shasta", "pmi2", "pmix_v4"}));
    EXPECT_EQ(parse_mpi_list("srun: MPI types are...\nsrun: pmix_v3\nsrun: none\n"),
              (std::vector<std::string>{"pmix_v3", "none"}));
    EXPECT_EQ(parse_mpi_list("specific pmix plugin versions available: pmix_v4,pmix_v5\n"),
              (std::vector<std::string>{"pmix_v4", "pmix_v5"}));
    EXPECT_TRUE(parse_mpi_list("").empty());
}

TEST(srun_engine, an_even_layout) {
    auto job = job_on({4, 4}, {4, 4});
    job.program = "/usr/bin/true";
    auto const command = srun_command(job, slurm_22_05().sources());
    EXPECT_EQ(command.argv,
              (std::vector<std::string>{"srun", "--job-name=true", "--mpi=pmix", "--ntasks=8", "--ntasks-per-node=4",
                                        "--distribution=arbitrary", "--nodelist=/scratch/srun.hosts", "--overlap", "--mem=0",
                                        "--gres=gpu:4", "--kill-on-bad-exit=1", "--wait=0", "--export=ALL", "--input=0",
                                        "/bin/muster", "shim", "a.out"}));
    ASSERT_EQ(command.files.size(), 1U);
    EXPECT_EQ(command.files[0].first, "/scratch/srun.hosts");
    EXPECT_EQ(command.files[0].second, "n0\nn0\nn0\nn0\nn1\nn1\nn1\nn1\n");
    EXPECT_EQ(command.note, "");
}

TEST(srun_engine, uneven_by_node_and_partly_used_nodes) {
    auto job = job_on({1, 4, 0, 2}, {4, 4, 4, 4});
    job.map.order = map_policy::node;
    auto const command = srun_command(job, slurm_22_05().sources());
    EXPECT_EQ(command.files.at(0).second, "n0\nn1\nn3\nn1\nn3\nn1\nn1\n");
    EXPECT_THAT(command.argv, testing::Not(testing::Contains(testing::StartsWith("--nodes")))) << "refused from 23.11 on";
    EXPECT_THAT(command.argv, testing::Contains("--ntasks=7"));
    EXPECT_THAT(command.argv, testing::Contains("--gres=gpu:4"));
    EXPECT_THAT(command.argv, testing::Not(testing::Contains(testing::StartsWith("--ntasks-per-node"))));
}

TEST(srun_engine, one_node_needs_no_file) {
    auto const command = srun_command(job_on({0, 3}, {2, 4}), slurm_22_05().sources());
    EXPECT_TRUE(command.files.empty());
    EXPECT_THAT(command.argv, testing::IsSupersetOf({"--nodes=1", "--nodelist=n1"}));
    EXPECT_THAT(command.argv, testing::Not(testing::Contains("--distribution=arbitrary")));
    EXPECT_THAT(command.argv, testing::Contains("--gres=gpu:4"));
}

TEST(srun_engine, nodes_of_different_gpus_get_what_the_job_has) {
    for (auto const& gpus : {std::vector<int>{4, 1}, {0, 0}, {4, -1}, {-1, -1}})
        EXPECT_THAT(srun_command(job_on({4, 1}, gpus), slurm_22_05().sources()).argv,
                    testing::Not(testing::Contains(testing::StartsWith("--gres"))));
}

TEST(srun_engine, gpus_of_nodes_that_differ_are_asked_for_by_their_sum) {
    using testing::Contains;
    using testing::Not;
    // On 22.05 a step with --overlap is then refused: "Insufficient GRES available in allocation".
    auto const uneven = srun_command(job_on({4, 1}, {4, 1}), slurm_22_05().sources()).argv;
    EXPECT_THAT(uneven, Contains("--gpus=5"));
    EXPECT_THAT(uneven, Not(Contains("--overlap")));
    auto const some = srun_command(job_on({4, 0, 1}, {4, 4, 1}), slurm_22_05().sources()).argv;
    EXPECT_THAT(some, Contains("--gpus=5"));
    // One node of a job by --gpus: --gres is refused, --overlap is not.
    auto one = job_on({4, 0}, {4, 1});
    EXPECT_THAT(srun_command(one, slurm_22_05().sources()).argv, Contains("--gres=gpu:4"));
    one.variables = {{"SLURM_GPUS", "5"}};
    auto const command = srun_command(one, slurm_22_05().sources());
    EXPECT_THAT(command.argv, testing::IsSupersetOf({"--gpus=4", "--overlap"}));
    EXPECT_FALSE(command.variables.has("SLURM_GPUS"));
    auto even = job_on({4, 4}, {4, 4});
    even.variables = {{"SLURM_GPUS", "8"}};
    EXPECT_THAT(srun_command(even, slurm_22_05().sources()).argv, testing::IsSupersetOf({"--gres=gpu:4", "--overlap"}));
}

TEST(srun_engine, where_slots_are_named_the_step_has_all_gpus_of_the_job) {
    auto job = job_on({4, 1, 3}, {4, 1, 3});
    for (auto& node : job.given.nodes) node.slots_named = true;
    auto const none =
        testing::Not(testing::Contains(testing::AnyOf(testing::StartsWith("--gpus"), testing::StartsWith("--gres"))));
    EXPECT_THAT(srun_command(job, slurm_22_05().sources()).argv, testing::AllOf(none, testing::Contains("--overlap")));
    environment daemons;
    order_daemons_step(job, "", daemons);
    EXPECT_EQ(daemons, (environment{{"SLURM_OVERLAP", "1"}}));
    job.variables = {{"SLURM_GPUS", "8"}};
    EXPECT_THAT(srun_command(job, slurm_22_05().sources()).argv, testing::Contains("--gpus=8"));
}

TEST(srun_engine, a_step_of_daemons_has_the_gpus_of_their_nodes) {
    auto const orders = [](engine_job const& job, std::string const& left_out) {
        environment variables{{"SLURM_GPUS", "9"},
                              {"SLURM_NTASKS_PER_NODE", "1"},
                              {"SLURM_CPUS_PER_TASK", "2"},
                              {"SLURM_TRES_BIND", "gres/gpu:per_task:1"}};
        order_daemons_step(job, left_out, variables);
        return variables;
    };
    auto const uneven = job_on({4, 1}, {4, 1});
    EXPECT_EQ(orders(uneven, ""), (environment{{"SLURM_GPUS", "5"}}));
    EXPECT_EQ(orders(uneven, "n0"), (environment{{"SLURM_GPUS", "1"}}));
    EXPECT_EQ(orders(job_on({4, 4}, {4, 4}), "n0"), (environment{{"SLURM_OVERLAP", "1"}, {"SLURM_GRES", "gpu:4"}}));
    EXPECT_EQ(orders(job_on({1, 1}, {-1, -1}), ""), (environment{{"SLURM_OVERLAP", "1"}}));
}

TEST(srun_engine, mpich_is_told_who_shares_a_node_where_numbers_are_enough) {
    using testing::Contains;
    auto job = job_on({4, 4}, {4, 4});
    job.variables = {{"SLURM_JOB_NODELIST", "n[0-3]"}};
    job.extra_arguments = {"--mpi=pmi2"};
    auto const layout = [&] { return srun_command(job, slurm_22_05().sources()); };
    EXPECT_THAT(layout().argv, testing::IsSupersetOf({"--distribution=block", "--nodelist=n0,n1", "--nodes=2",
                                                      "--ntasks-per-node=4", "--ntasks=8"}));
    EXPECT_TRUE(layout().files.empty());
    EXPECT_EQ(layout().note, "");
    auto const by_file = [&](std::string const& why) {
        auto const command = layout();
        EXPECT_THAT(command.argv, Contains("--distribution=arbitrary")) << why;
        EXPECT_THAT(command.argv, testing::Not(Contains(testing::StartsWith("--nodes")))) << why;
        EXPECT_THAT(command.note, testing::HasSubstr("MPI_Comm_split_type")) << why;
    };
    job.given.nodes[1].cpus = 1;
    by_file("srun fills nodes of different sizes in another way");
    job = job_on({4, 3}, {4, 4});
    job.extra_arguments = {"--mpi=pmi2"};
    by_file("uneven");
    job.map.ranks_per_node = {4, 4};
    job.map.order = map_policy::node;
    by_file("ranks of a node are no neighbours");
    job.map.order = map_policy::slot;
    job.variables = {{"SLURM_JOB_NODELIST", "n1,n0"}};
    by_file("nodes in another order than the job's");
    job.extra_arguments = {};
    EXPECT_EQ(layout().note, "") << "PMIx tells it in any layout";
}

/// The word --mpi=… of a job of the given command.
std::string plugin_of(std::vector<std::string> const& command, answers const& a) {
    auto job = job_on({1, 1}, {0, 0});
    job.program = "/usr/bin/" + command.front();
    job.command = command;
    for (auto const& word : srun_command(job, a.sources()).argv)
        if (word.starts_with("--mpi=")) return word;
    return "";
}

TEST(srun_engine, the_mpi_of_mpi4py_is_asked_of_that_python) {
    auto a = slurm_22_05();
    a.files["a.py"] = "import sys\nfrom mpi4py import MPI\n";
    a.files["b.py"] = "print(1)\n";
    auto const question =
        " -c import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.Get_library_version())";
    auto& said = a.said[std::string("/usr/bin/python3") + question];
    said = {0, "MPICH Version:      5.0.2\nMPICH Release date: x\n", ""};
    EXPECT_EQ(plugin_of({"python3", "-u", "a.py", "--x"}, a), "--mpi=pmi2");
    EXPECT_EQ(plugin_of({"python3", "-m", "mpi4py", "b.py"}, a), "--mpi=pmi2");
    EXPECT_EQ(plugin_of({"python3", "b.py"}, a), "--mpi=pmix") << "no word of mpi4py, so it is not asked";
    EXPECT_EQ(plugin_of({"bash", "a.py"}, a), "--mpi=pmix");
    a.files["/usr/bin/c.py"] = "#!/usr/bin/env  python3\nimport mpi4py\n";
    a.files["c.py"] = a.files["/usr/bin/c.py"];
    a.said[std::string("python3") + question] = said;
    EXPECT_EQ(plugin_of({"c.py"}, a), "--mpi=pmi2");
    said.out = "Open MPI v4.1.4, package: Debian OpenMPI\n";
    EXPECT_EQ(plugin_of({"python3", "a.py"}, a), "--mpi=pmix");
    said = {1, "", "ModuleNotFoundError\n"};
    EXPECT_EQ(plugin_of({"python3", "a.py"}, a), "--mpi=pmix");
}

TEST(srun_engine, a_plugin_that_the_user_names_is_taken_where_the_program_does_not_tell) {
    auto a = slurm_22_05();
    a.variables.set("SLURM_MPI_TYPE", "pmi2");
    EXPECT_EQ(plugin_of({"bash"}, a), "--mpi=pmi2");
    a.variables.set("SLURM_MPI_TYPE", "openmpi");
    EXPECT_EQ(plugin_of({"bash"}, a), "--mpi=pmix") << "this Slurm has no such plugin";
    a.variables.set("SLURM_MPI_TYPE", "none");
    EXPECT_EQ(plugin_of({"bash"}, a), "--mpi=pmix");
    a.variables.set("SLURM_MPI_TYPE", "pmi2");
    a.variables.set("SLURM_STEP_ID", "0");
    EXPECT_EQ(plugin_of({"bash"}, a), "--mpi=pmix") << "that of the step";
    for (auto const* script : {"-5", "4294967291"}) {
        a.variables.set("SLURM_STEP_ID", script);
        EXPECT_EQ(plugin_of({"bash"}, a), "--mpi=pmi2") << "the job's own script is no step of the user's: " << script;
    }
}

TEST(srun_engine, gpus_that_slurm_does_not_know_are_not_asked_of_it) {
    auto job = job_on({4, 4}, {4, 4});
    for (auto& node : job.given.nodes) node.gpus_counted = true;
    EXPECT_THAT(srun_command(job, slurm_22_05().sources()).argv, testing::Not(testing::Contains(testing::StartsWith("--gres"))));
}

TEST(srun_engine, more_ranks_than_processors_are_asked_for_outright) {
    auto job = job_on({4, 4}, {4, 4});
    EXPECT_THAT(srun_command(job, slurm_22_05().sources()).argv, testing::Not(testing::Contains("--overcommit")));
    job.given.nodes[1].cpus = 1;
    EXPECT_THAT(srun_command(job, slurm_22_05().sources()).argv, testing::Contains("--overcommit"));
    job.probe = true;
    EXPECT_THAT(srun_command(job, slurm_22_05().sources()).argv, testing::Not(testing::Contains("--overcommit")));
}

TEST(srun_engine, binding_is_forbidden_only_where_something_binds) {
    auto a = slurm_22_05();
    EXPECT_THAT(srun_command(job_on({1, 1}, {0, 0}), a.sources()).argv, testing::Not(testing::Contains("--cpu-bind=none")));
    a.said["scontrol show config"].out =
        "TaskPlugin              = task/cgroup,task/affinity\nTaskPluginParam         = (null type)\n";
    EXPECT_THAT(srun_command(job_on({1, 1}, {0, 0}), a.sources()).argv, testing::Contains("--cpu-bind=none"));
    for (auto const* none : {"task/none", "(null)", ""}) {
        a.said["scontrol show config"].out = fmt::format("TaskPlugin              = {}\n", none);
        EXPECT_THAT(srun_command(job_on({1, 1}, {0, 0}), a.sources()).argv, testing::Not(testing::Contains("--cpu-bind=none")))
            << none;
    }
    a.said.erase("scontrol show config");
    EXPECT_THAT(srun_command(job_on({1, 1}, {0, 0}), a.sources()).argv, testing::Contains("--cpu-bind=none"));
}

TEST(slurm_configuration, names_the_munged_by_which_users_are_known) {
    EXPECT_EQ(munge_socket("AuthInfo                = (null)\nAuthType                = auth/munge\n"), "");
    EXPECT_EQ(munge_socket(
                  "AuthInfo                = cred_expire=5,socket=/run/m.socket,ttl=3\nAuthType                = auth/munge\n"),
              "/run/m.socket");
    EXPECT_EQ(munge_socket("AuthType                = auth/slurm\n"), std::nullopt);
    EXPECT_EQ(munge_socket("AuthAltTypes            = auth/munge\nAuthTypes=auth/munge\n"), std::nullopt);
    EXPECT_EQ(munge_socket(""), std::nullopt);
}

TEST(srun_engine, options_follow_the_version) {
    auto a = slurm_22_05();
    auto job = job_on({4, 4}, {4, 4});
    job.variables = {{"SLURM_CPUS_PER_TASK", "8"}, {"SRUN_CPUS_PER_TASK", "8"}, {"SLURM_JOB_ID", "42"}};
    auto const plain = srun_command(job, a.sources());
    a.said["srun --version"].out = "slurm 20.02.7\n";
    EXPECT_THAT(srun_command(job, a.sources()).argv, testing::Not(testing::Contains("--overlap")));
    for (auto const* version :
         {"slurm-wlm 22.05.8", "slurm 23.02.7", "slurm 23.11.0", "slurm 23.11.11", "slurm 24.05.8", "slurm 25.05.8",
          "slurm 25.11.7", "slurm 26.05.3", "slurm 26.11.0-0rc1", "slurm of a site's own"}) {
        a.said["srun --version"].out = std::string(version) + "\n";
        EXPECT_EQ(srun_command(job, a.sources()), plain) << version;
    }
    EXPECT_EQ(plain.variables, (environment{{"SLURM_JOB_ID", "42"}}));
    EXPECT_THAT(plain.argv, testing::Not(testing::Contains(testing::StartsWith("--gres-flags"))))
        << "23.11.0 does not know its word";
}

TEST(srun_engine, inherited_orders_are_taken_out_and_facts_stay) {
    environment variables{{"SLURM_JOB_ID", "42"},           {"SLURM_GPUS_PER_TASK", "1"}, {"SLURM_DISTRIBUTION", "cyclic"},
                          {"SLURM_TRES_PER_TASK", "x"},     {"SLURM_CPU_BIND", "cores"},  {"SLURM_NTASKS_PER_NODE", "1"},
                          {"SLURM_JOB_NODELIST", "n[0-1]"}, {"SLURM_MEM_PER_CPU", "1"},   {"SLURM_HOSTFILE", "/x"}};
    for (auto const* name : {"SLURM_CPUS_PER_TASK", "SLURM_TRES_BIND", "SLURM_GPU_BIND", "SRUN_OUTPUT", "SRUN_ERROR",
                             "SRUN_INPUT", "SLURM_EXTERNAL_LAUNCHER", "SRUN_SEGMENT_SIZE", "SLURM_EXIT_ERROR"})
        variables.set(name, "1");
    unset_srun_orders(variables);
    EXPECT_EQ(variables, (environment{{"SLURM_JOB_ID", "42"}, {"SLURM_JOB_NODELIST", "n[0-1]"}}));
}

TEST(srun_engine, a_probe_is_one_shim_a_node_without_a_pmi) {
    auto job = job_on({4, 2}, {4, 4});
    job.probe = true;
    auto const command = srun_command(job, slurm_22_05().sources());
    EXPECT_THAT(command.argv, testing::IsSupersetOf({"--mpi=none", "--ntasks=2", "--ntasks-per-node=1", "--input=none",
                                                     "--gres=gpu:4", "--kill-on-bad-exit=0"}));
    EXPECT_EQ(command.files.at(0).second, "n0\nn1\n");
}

TEST(srun_engine, extra_arguments_stand_behind_our_own) {
    auto job = job_on({1, 1}, {0, 0});
    job.extra_arguments = {"--mem=10", "-v"};
    auto const argv = srun_command(job, slurm_22_05().sources()).argv;
    ASSERT_GE(argv.size(), 5U);
    EXPECT_EQ(std::vector(argv.end() - 5, argv.end()),
              (std::vector<std::string>{"--mem=10", "-v", "/bin/muster", "shim", "a.out"}));
    EXPECT_EQ(srun_command(job, slurm_22_05().sources()).speaks, wire_up::pmix);
    job.extra_arguments = {"--mpi=pmi2"};
    EXPECT_EQ(srun_command(job, slurm_22_05().sources()).speaks, wire_up::pmi);
}

TEST(srun_engine, without_pmix_only_programs_without_mpi) {
    auto a = slurm_22_05();
    a.said["srun --mpi=list"].out = "MPI plugin types are...\n\tnone\n\tpmi2\n";
    auto job = job_on({1, 1}, {0, 0});
    EXPECT_EQ(srun_unavailable(job, a.sources()), std::nullopt);
    auto const command = srun_command(job, a.sources());
    EXPECT_THAT(command.argv, testing::Contains("--mpi=none"));
    EXPECT_EQ(command.speaks, wire_up::none);
    EXPECT_EQ(
        command.note,
        "this Slurm has no PMIx plugin (srun --mpi=list says: none, pmi2): ranks that load MPI at run time (mpi4py) would each "
        "come up alone; for those use --engine mpirun");
}

TEST(srun_engine, a_script_below_cray_mpich_speaks_as_that_does) {
    auto a = slurm_22_05();
    a.said["srun --mpi=list"].out = "MPI plugin types are...\n\tcray_shasta\n\tnone\n\tpmi2\n\tpmix\n";
    auto job = job_on({1, 1}, {0, 0});
    EXPECT_THAT(srun_command(job, a.sources()).argv, testing::Contains("--mpi=pmix"));
    job.variables = {{"CRAY_MPICH_DIR", "/opt/cray/pe/mpich/8.1.28/ofi/gnu/12.3"}};
    auto const command = srun_command(job, a.sources());
    EXPECT_THAT(command.argv, testing::Contains("--mpi=cray_shasta"));
    EXPECT_EQ(command.speaks, wire_up::pmi);
}

TEST(srun_engine, refusals_say_what_is_lacking) {
    auto const job = job_on({1, 1}, {0, 0});
    auto a = slurm_22_05();
    a.variables = {};
    EXPECT_EQ(srun_unavailable(job, a.sources()), "this is no Slurm job (SLURM_JOB_ID is not set)");
    a = slurm_22_05();
    EXPECT_EQ(srun_unavailable(job_on({1, 1}, {0, 0}, scheduler_kind::hostfile), a.sources()),
              "the nodes come from hostfile, not from Slurm");
    a.said.erase("srun --version");
    EXPECT_EQ(srun_unavailable(job, a.sources()), "there is no srun on PATH");
    a.said["srun --version"] = {1, "", "srun: fatal: Could not establish a configuration source\n"};
    EXPECT_EQ(srun_unavailable(job, a.sources()),
              "srun --version failed (1): srun: fatal: Could not establish a configuration source");
}

TEST(srun_engine, the_first_component_of_a_heterogeneous_job) {
    auto a = slurm_22_05();
    a.variables = {{"SLURM_JOB_ID", "42"}, {"SLURM_HET_SIZE", "2"}, {"SLURM_JOB_NODELIST_HET_GROUP_0", "n[0-1]"}};
    EXPECT_EQ(srun_unavailable(job_on({4, 4}, {4, 4}), a.sources()), std::nullopt);
    EXPECT_EQ(
        srun_unavailable(job_on({4, 4, 2}, {4, 4, 4}), a.sources()),
        "this is a heterogeneous Slurm job of 2 components, and n2 is not in the first one, the only one in which muster "
        "starts ranks, by any engine; give -H n[0-1] for that one, ask for the nodes without a colon, or start the program by "
        "srun --het-group");
    a.said["mpirun --version"] = {0, fixture("mpirun_version_4.1.4"), ""};
    EXPECT_THAT(mpirun_unavailable(job_on({4, 4, 2}, {4, 4, 4}), a.sources()).value_or(""),
                testing::HasSubstr("n2 is not in the first one"));
    EXPECT_EQ(mpirun_unavailable(job_on({4, 4}, {4, 4}), a.sources()), std::nullopt);
}

TEST(srun_engine, a_step_is_ended_by_its_number) {
    EXPECT_EQ(srun_cancel("42.3"), (std::vector<std::string>{"scancel", "42.3"}));
}

TEST(program_version, versions) {
    EXPECT_EQ(find_version("slurm-wlm 22.05.8"), (program_version{22, 5}));
    EXPECT_EQ(find_version("mpirun (Open MPI) 4.1.4"), (program_version{4, 1}));
    EXPECT_EQ(find_version("slurm 20.11-beta1"), (program_version{20, 11}));
    EXPECT_EQ(find_version("7 of 9"), std::nullopt);
    EXPECT_EQ(find_version("99999999999999999999.1"), (program_version{999999999, 1}));
    EXPECT_EQ(find_version("1."), std::nullopt);
}

TEST(mpi_family, families_of_mpi_libraries) {
    EXPECT_EQ(family_of(""), mpi_family::none);
    EXPECT_EQ(family_of("libmpi.so.40"), mpi_family::open_mpi);
    EXPECT_EQ(family_of("libmpi_cxx.so.40"), mpi_family::open_mpi);
    EXPECT_EQ(family_of("libmpich.so.12"), mpi_family::mpich);
    EXPECT_EQ(family_of("libmpi.so.12"), mpi_family::mpich);
    EXPECT_EQ(family_of("libmpi_cray.so.12"), mpi_family::cray);
    EXPECT_EQ(family_of("libmpi_gnu_123.so.12"), mpi_family::cray);
    EXPECT_EQ(family_of("/usr/lib/x86_64-linux-gnu/libmpich.so.12.2.2"), mpi_family::mpich);
    EXPECT_EQ(family_of("/opt/mpich/lib/libmpi.so.12.1.8"), mpi_family::mpich);
    EXPECT_EQ(family_of("/home/cray/lib/libmpi.so.40.30.4"), mpi_family::open_mpi);
}

TEST(mpi_family, what_libraries_say_of_themselves) {
    EXPECT_EQ(family_that_says(""), mpi_family::none);
    EXPECT_EQ(family_that_says("Open MPI v5.0.8, package: x, repo rev: v5.0.8"), mpi_family::open_mpi);
    EXPECT_EQ(family_that_says("MPICH Version:      4.0.2"), mpi_family::mpich);
    EXPECT_EQ(family_that_says("MPI VERSION    : CRAY MPICH version 8.1.28.15 (ANL base 3.4a2)"), mpi_family::cray);
    EXPECT_EQ(family_that_says("Intel(R) MPI Library 2021.9 for Linux* OS"), mpi_family::mpich);
}

TEST(mpi_family, which_mpi_meets_its_world) {
    EXPECT_FALSE(is_foreign(mpi_family::none, wire_up::none));
    EXPECT_FALSE(is_foreign(mpi_family::open_mpi, wire_up::pmix));
    EXPECT_FALSE(is_foreign(mpi_family::mpich, wire_up::pmi));
    EXPECT_FALSE(is_foreign(mpi_family::cray, wire_up::pmi));
    EXPECT_TRUE(is_foreign(mpi_family::open_mpi, wire_up::pmi));
    EXPECT_TRUE(is_foreign(mpi_family::mpich, wire_up::pmix));
    EXPECT_TRUE(is_foreign(mpi_family::open_mpi, wire_up::none));
}

}  // namespace
}  // namespace muster
