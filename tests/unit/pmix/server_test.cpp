// Real processes against the real servers.
#include "pmix/server/server.hpp"

#include <gmock/gmock.h>

#include "tests/unit/pmix/local_job.hpp"

// What the PMIx library keeps until the process ends is its own.
extern "C" char const* __lsan_default_suppressions();
extern "C" char const* __lsan_default_suppressions() {
    return "leak:libpmix\nleak:libhwloc\nleak:libevent\n";
}

namespace muster::pmix {
namespace {

using kind = server_event::kind;
using test::outcome;
using test::program;
using test::run_job;
using test::script;
using test::small_job;
using testing::HasSubstr;

TEST(server, is_one_a_process) {
    EXPECT_TRUE(test::in_child([] {
        test::session_dir const session;
        {
            server const one(small_job(session.path));
            EXPECT_GE(one.event_fd(), 0);
            EXPECT_THROW(server(small_job(session.path)), error);
        }
        EXPECT_THROW(server(small_job(session.path)), error) << "not even after the first has ended";
    }));
}

TEST(server, refuses_what_is_no_job) {
    EXPECT_TRUE(test::in_child([] {
        test::session_dir const session;
        EXPECT_THROW(server(small_job(session.path, 0)), error);
        EXPECT_THROW(server(small_job(session.path, -1)), error);
        auto nameless = small_job(session.path);
        nameless.nspace.clear();
        EXPECT_THROW(server{nameless}, error);
        server const still_works(small_job(session.path));
    }));
    EXPECT_TRUE(test::in_child([] {
        test::session_dir const session;
        auto unbindable = small_job(session.path);
        unbindable.cpusets = {"0-x"};
        EXPECT_THROW(server{unbindable}, error);
    }));
}

TEST(server, tells_each_rank_who_it_is) {
    EXPECT_TRUE(test::in_child([] {
        test::session_dir const session;
        server one(small_job(session.path, 3));
        environment variables{{"PMIX_RANK", "9"}, {"OMPI_MCA_pml", "ucx"}, {"OMPI_COMM_WORLD_SIZE", "99"}};
        one.set_client_environment(2, variables);
        EXPECT_EQ(variables.get("PMIX_RANK"), "2");
        EXPECT_EQ(variables.get("PMIX_NAMESPACE"), "small");
        EXPECT_EQ(variables.get("OMPI_COMM_WORLD_SIZE"), "3");
        EXPECT_EQ(variables.get("JSM_JSRUN_PORT"), "1");
        EXPECT_EQ(variables.get("OMPI_MCA_pml"), "ucx") << "the user's choice";
        EXPECT_FALSE(variables.has("OMPI_MCA_btl")) << "a list of shared-memory transports would contradict it";
        EXPECT_EQ(variables.get("OMPI_MCA_btl_vader_backing_directory"), session.path);
    }));
}

TEST(server, registers_many_bound_ranks) {
    EXPECT_TRUE(test::in_child([] {
        test::session_dir const session;
        auto bound = small_job(session.path, 128);
        bound.cpusets.assign(128, "0");
        server one(bound);
        environment variables;
        one.set_client_environment(127, variables);
        EXPECT_EQ(variables.get("PMIX_RANK"), "127");
        EXPECT_EQ(variables.get("OMPI_MCA_mpi_oversubscribe"), "1") << "128 ranks on one processor";
    }));
}

class worlds : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(sizes, worlds, testing::Values(1, 2, 8, 32), testing::PrintToStringParamName());

void expect_world(outcome const& result, int size) {
    EXPECT_TRUE(result.all_ended_well()) << result.output;
    for (int rank = 0; rank < size; ++rank)
        EXPECT_EQ(result.lines_with("rank " + std::to_string(rank) + " of " + std::to_string(size) + " "), 1) << result.output;
    EXPECT_EQ(result.count(kind::connected), size);
    EXPECT_EQ(result.count(kind::finalized), size);
}

TEST_P(worlds, open_mpi) {
    SKIP_WITHOUT(program("hello_openmpi"));
    expect_world(run_job(GetParam(), {program("hello_openmpi")}), GetParam());
}

TEST_P(worlds, mpich) {
    SKIP_WITHOUT(program("hello_mpich"));
    expect_world(run_job(GetParam(), {program("hello_mpich")}), GetParam());
}

TEST_P(worlds, pure_pmix) {
    SKIP_WITHOUT(program("pmix_probe"));
    expect_world(run_job(GetParam(), {program("pmix_probe"), "exchange"}), GetParam());
}

TEST_P(worlds, mpi4py) {
    SKIP_WITHOUT(program("hello_openmpi"));
    if (run_job(1, {"/usr/bin/python3", "-c", "import mpi4py"}).statuses[0] != 0)
        GTEST_SKIP() << "no mpi4py for /usr/bin/python3";
    expect_world(run_job(GetParam(), {"/usr/bin/python3", script("hello_mpi4py.py")}), GetParam());
}

TEST(server, programs_without_mpi_end_without_a_word) {
    auto const result = run_job(8, {"/bin/true"});
    EXPECT_TRUE(result.all_ended_well());
    EXPECT_TRUE(result.events.empty());
}

void expect_abort(outcome const& result, int code) {
    EXPECT_FALSE(result.timed_out) << result.output;
    ASSERT_EQ(result.count(kind::aborted), 1) << result.output;
    for (auto const& event : result.events)
        if (event.what == kind::aborted) {
            EXPECT_EQ(event.code, code);
            EXPECT_EQ(event.rank, 0);
        }
}

TEST(server, open_mpi_abort) {
    SKIP_WITHOUT(program("hello_openmpi"));
    expect_abort(run_job(4, {program("hello_openmpi"), "abort", "42"}), 42);
}

TEST(server, mpich_abort) {
    SKIP_WITHOUT(program("hello_mpich"));
    expect_abort(run_job(4, {program("hello_mpich"), "abort", "42"}), 42);
}

TEST(server, pmix_abort_says_why) {
    SKIP_WITHOUT(program("pmix_probe"));
    auto const result = run_job(3, {program("pmix_probe"), "abort"});
    expect_abort(result, 42);
    ASSERT_FALSE(result.events.empty());
    EXPECT_EQ(result.events.back().text, "enough");
}

TEST(server, survivors_hear_of_a_killed_rank) {
    SKIP_WITHOUT(program("pmix_probe"));
    auto const result = run_job(4, {program("pmix_probe"), "watch"});
    EXPECT_FALSE(result.timed_out);
    for (int rank : {0, 2, 3}) EXPECT_THAT(result.output, HasSubstr("rank " + std::to_string(rank) + " saw rank 1 end with 137"));
    EXPECT_TRUE(WIFSIGNALED(result.statuses[1]));
}

TEST(server, shows_what_ranks_log) {
    SKIP_WITHOUT(program("pmix_probe"));
    auto const result = run_job(2, {program("pmix_probe"), "log"});
    EXPECT_TRUE(result.all_ended_well()) << result.output;
    EXPECT_EQ(result.count(kind::log), 2) << result.output;
}

class probes : public testing::TestWithParam<char const*> {};
INSTANTIATE_TEST_SUITE_P(upcalls, probes, testing::Values("publish", "group", "spawn", "missing-key"), [](auto const& tested) {
    std::string name = tested.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

TEST_P(probes, is_answered) {
    SKIP_WITHOUT(program("pmix_probe"));
    auto const result = run_job(3, {program("pmix_probe"), GetParam()});
    EXPECT_TRUE(result.all_ended_well()) << result.output;
}

TEST(server, ranks_come_up_right_below_another_launcher) {
    SKIP_WITHOUT(program("hello_openmpi"));
    // What mpirun 4.1, Hydra and srun leave in the environment.
    auto variables = environment::capture();
    for (auto const* line :
         {"OMPI_COMM_WORLD_SIZE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_num_procs", "PMI_SIZE", "SLURM_NTASKS", "PMI_FD"})
        variables.set(line, "77");
    for (auto const* line : {"OMPI_COMM_WORLD_RANK", "OMPI_MCA_ess_base_vpid", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"})
        variables.set(line, "0");
    variables.set("PMIX_NAMESPACE", "501547009");
    variables.set("PMIX_SERVER_URI41", "501547008.0;tcp4://127.0.0.1:1");
    variables.set("OMPI_MCA_ess", "^singleton");
    variables.set("OMPI_MCA_orte_top_session_dir", "/nonexistent/outer");
    variables.set("OMPI_MCA_orte_launch", "1");
    expect_world(run_job(2, {program("hello_openmpi")}, variables), 2);
    if (access(program("hello_mpich").c_str(), X_OK) == 0) expect_world(run_job(2, {program("hello_mpich")}, variables), 2);
}

}  // namespace
}  // namespace muster::pmix
