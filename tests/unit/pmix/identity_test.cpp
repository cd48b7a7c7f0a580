#include "pmix/identity.hpp"

#include <gmock/gmock.h>

#include "base/error.hpp"
#include "pmix/slurm_step.hpp"
#include "tests/packed_files.hpp"

namespace muster {
namespace {

using source = identity::source;
using testing::ElementsAre;
using testing::HasSubstr;

identity who(environment const& variables) {
    return identify(variables, "here");
}

/// The variables of a captured environment: `part` of tests/fixtures/slurm/NAME.
environment captured(std::string const& name, std::string const& part) {
    return variables_in(read_packed_files(MUSTER_FIXTURES "/slurm/" + name).at(part));
}

environment captured_task(std::string const& name, int rank) {
    return captured(name + ".tasks", "task" + std::to_string(rank));
}

void expect_error(environment const& variables, errc code, std::string const& text) {
    try {
        who(variables);
        FAIL() << "no error";
    } catch (error const& e) {
        EXPECT_EQ(e.code(), code) << e.what();
        EXPECT_THAT(e.what(), HasSubstr(text));
    }
}

environment const muster_rank{{"MUSTER_NSPACE", "job"},   {"MUSTER_RANK", "2"},       {"MUSTER_WORLD_SIZE", "4"},
                              {"MUSTER_LOCAL_RANK", "0"}, {"MUSTER_LOCAL_SIZE", "2"}, {"MUSTER_NODE_RANK", "1"},
                              {"MUSTER_NODE_COUNT", "2"}, {"MUSTER_HOST", "node2"}};

TEST(identity, nothing_is_a_singleton) {
    identity expected;
    expected.nspace = "singleton";
    expected.host = "here";
    EXPECT_EQ(who({}), expected);
    EXPECT_EQ(who({{"HOME", "/root"}, {"OMPI_MCA_btl", "self"}}), expected);
    EXPECT_FALSE(identify(environment{}).host.empty());
}

TEST(identity, muster_says_everything) {
    EXPECT_EQ(who(muster_rank), (identity{"job", 2, 4, 0, 2, 1, 2, "node2", source::muster}));
}

TEST(identity, what_is_left_over_from_outside_does_no_harm_inside_muster) {
    auto variables = muster_rank;
    for (auto const* name :
         {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "SLURM_STEP_ID"})
        variables.set(name, "77");
    variables.set("SLURM_STEP_TASKS_PER_NODE", "no number");
    EXPECT_EQ(who(variables), who(muster_rank));
}

TEST(identity, slurm_tasks) {
    for (int rank = 0; rank < 8; ++rank) {
        auto const found = who(captured_task("srun_uneven", rank));
        bool const second = rank == 7;  // 7 ranks on the first node, 1 on the second
        EXPECT_EQ(found, (identity{"slurm.pmix.12.0", rank, 8, second ? 0 : rank, second ? 1 : 7, second ? 1 : 0, 2,
                                   second ? "node2" : "node1", source::pmix}));
    }
    for (int rank = 0; rank < 4; ++rank) {
        auto const found = who(captured_task("srun_none", rank));
        bool const second = rank == 3;
        EXPECT_EQ(found, (identity{"slurm.24.0", rank, 4, second ? 0 : rank, second ? 1 : 3, second ? 1 : 0, 2,
                                   second ? "node2" : "node1", source::slurm}));
    }
}

TEST(identity, slurm_distributions_and_pmi2) {
    std::vector<int> nodes;
    for (int rank = 0; rank < 6; ++rank) nodes.push_back(who(captured_task("srun_cyclic", rank)).node_rank);
    EXPECT_THAT(nodes, ElementsAre(0, 1, 0, 0, 0, 0));  // rank divided by ranks per node would be wrong
    EXPECT_EQ(who(captured_task("srun_pmi2", 3)).world_size, 4);
    EXPECT_EQ(who(captured_task("srun_pmi2", 3)).from, source::slurm);
    EXPECT_EQ(who(captured_task("srun_pmix", 5)).local_rank, 1);
}

TEST(identity, a_batch_script_is_no_rank) {
    for (auto const* name : {"sbatch_batch", "sbatch_gres_batch", "salloc_shell"}) {
        auto const found = who(captured(name + std::string(".job"), "env"));
        EXPECT_EQ(found.from, source::singleton) << name;
        EXPECT_EQ(found.world_size, 1) << name;
    }
    // salloc with use_interactive_step: the shell is a task of a step of Slurm's own
    auto shell = captured_task("srun_none", 0);
    shell.set("SLURM_STEP_ID", "4294967290");
    EXPECT_EQ(who(shell).from, source::singleton);
}

TEST(identity, hydra) {
    environment const rank5{{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "4"}};
    EXPECT_EQ(who(rank5), (identity{"pmi", 5, 8, 1, 4, 1, 2, "here", source::pmi}));
}

TEST(identity, pals_fills_what_pmi_does_not_tell) {
    environment const rank{{"PMI_RANK", "9"},        {"PMI_SIZE", "12"},   {"PALS_RANKID", "9"}, {"PALS_LOCAL_RANKID", "1"},
                           {"PALS_LOCAL_SIZE", "4"}, {"PALS_NODEID", "2"}, {"PALS_APID", "abc"}};
    EXPECT_EQ(who(rank), (identity{"abc", 9, 12, 1, 4, 2, 3, "here", source::pmi}));
}

TEST(identity, open_mpi) {
    environment const rank{{"OMPI_COMM_WORLD_RANK", "3"},
                           {"OMPI_COMM_WORLD_SIZE", "4"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                           {"PMIX_RANK", "3"},
                           {"PMIX_NAMESPACE", "501547009"},
                           {"OMPI_COMM_WORLD_NODE_RANK", "1"}};
    EXPECT_EQ(who(rank), (identity{"501547009", 3, 4, 1, 2, 1, 2, "here", source::pmix}));
}

TEST(identity, mpirun_inside_a_slurm_job) {
    // mpirun starts one daemon on each other node as a step; what the daemon starts inherits the daemon's variables.
    environment const rank{{"OMPI_COMM_WORLD_RANK", "5"},
                           {"OMPI_COMM_WORLD_SIZE", "8"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                           {"PMIX_RANK", "5"},
                           {"PMIX_NAMESPACE", "501547009"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_PROCID", "0"},
                           {"SLURM_STEP_NUM_TASKS", "1"},
                           {"SLURM_STEP_NUM_NODES", "1"},
                           {"SLURM_LOCALID", "0"},
                           {"SLURM_NODEID", "0"},
                           {"SLURM_STEP_TASKS_PER_NODE", "1"}};
    EXPECT_EQ(who(rank), (identity{"501547009", 5, 8, 1, 4, 1, 2, "here", source::pmix}));
}

TEST(identity, contradictions_are_named) {
    expect_error({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "1"}},
                 errc::singleton, "PMI_SIZE=1 and OMPI_COMM_WORLD_SIZE=4");
    auto alone = captured_task("srun_none", 3);
    alone.set("OMPI_COMM_WORLD_RANK", "0");
    alone.set("OMPI_COMM_WORLD_SIZE", "1");
    expect_error(alone, errc::singleton, "SLURM_PROCID=3 and OMPI_COMM_WORLD_RANK=0");
    auto one_per_node = captured_task("srun_none", 0);
    one_per_node.set("SLURM_STEP_NUM_TASKS", "2");
    one_per_node.set("SLURM_STEP_TASKS_PER_NODE", "1(x2)");
    one_per_node.set("PMI_RANK", "0");
    one_per_node.set("PMI_SIZE", "1");
    expect_error(one_per_node, errc::singleton, "contradict");
}

TEST(identity, what_does_not_parse_is_shown) {
    auto changed = [](char const* name, char const* value) {
        auto variables = muster_rank;
        variables.set(name, value);
        return variables;
    };
    expect_error(changed("MUSTER_RANK", "two"), errc::parse, "MUSTER_RANK");
    expect_error(changed("MUSTER_RANK", "-1"), errc::parse, "MUSTER_RANK=-1");
    expect_error(changed("MUSTER_RANK", "4"), errc::parse, "outside of its world of 4");
    expect_error(changed("MUSTER_LOCAL_RANK", "2"), errc::parse, "MUSTER_LOCAL_RANK=2");
    expect_error(changed("MUSTER_LOCAL_SIZE", "0"), errc::parse, "MUSTER_LOCAL_SIZE=0");
    expect_error(changed("MUSTER_LOCAL_SIZE", "5"), errc::parse, "MUSTER_LOCAL_SIZE");
    expect_error(changed("MUSTER_NODE_RANK", "2"), errc::parse, "MUSTER_NODE_RANK=2");
    expect_error(changed("MUSTER_WORLD_SIZE", "99999999999"), errc::parse, "MUSTER_WORLD_SIZE");
    expect_error({{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "x"}}, errc::parse, "no variable tells the size");
}

TEST(slurm, tasks_per_node) {
    EXPECT_THAT(parse_tasks_per_node("4(x2)"), ElementsAre(4, 4));
    EXPECT_THAT(parse_tasks_per_node("7,1"), ElementsAre(7, 1));
    EXPECT_THAT(parse_tasks_per_node("1(x2),16,3(x1)"), ElementsAre(1, 1, 16, 3));
    for (auto const* bad :
         {"", ",", "4(", "4(x", "4(x)", "4(x2", "4(x2),", "a", "4 ", "-1", "99999999999", "1(x99999999)", "4(x2)5"})
        EXPECT_THROW(parse_tasks_per_node(bad), parse_error) << bad;
}

}  // namespace
}  // namespace muster
