#include "launch/placement/job_layout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

allocation job_of(std::vector<int> const& gpus) {
    allocation given;
    given.scheduler = scheduler_kind::slurm;
    given.job_id = "7";
    for (std::size_t n = 0; n < gpus.size(); ++n) {
        node one;
        one.name = one.address = "n" + std::to_string(n);
        one.slots = 2;
        one.gpus = gpus[n];
        given.nodes.push_back(one);
    }
    return given;
}

std::vector<std::string> notes_of(environment const& variables, placement_request const& wanted = {}) {
    auto const given = job_of({4, 4});
    return notes_on_layout(given, wanted, map_ranks(given, wanted), variables);
}

TEST(job_layout, a_rank_for_each_gpu_is_told_where_the_job_has_another_number_of_tasks) {
    EXPECT_THAT(notes_of({{"SLURM_NTASKS", "4"}}),
                ElementsAre(AllOf(HasSubstr("4 tasks"), HasSubstr("8 GPUs"), HasSubstr("8 ranks"), HasSubstr("-n 4"))));
    EXPECT_THAT(notes_of({{"SLURM_NTASKS_PER_NODE", "1"}}), ElementsAre(HasSubstr("2 tasks")));
    EXPECT_THAT(notes_of({{"SLURM_NTASKS", "8"}}), IsEmpty());
    EXPECT_THAT(notes_of({}), IsEmpty());
}

TEST(job_layout, nothing_is_told_of_what_the_user_has_chosen) {
    placement_request wanted;
    wanted.ranks = 6;
    EXPECT_THAT(notes_of({{"SLURM_NTASKS", "4"}}, wanted), IsEmpty());
    EXPECT_THAT(notes_of({{"SLURM_NTASKS", "4"}, {"SLURM_STEP_ID", "0"}}), IsEmpty()) << "of a step";
}

TEST(job_layout, a_distribution_that_is_for_srun_is_told) {
    EXPECT_THAT(notes_of({{"SLURM_DISTRIBUTION", "cyclic"}}),
                ElementsAre(AllOf(HasSubstr("-m cyclic"), HasSubstr("--map-by node"))));
    EXPECT_THAT(notes_of({{"SLURM_DISTRIBUTION", "block"}}), IsEmpty());
    placement_request wanted;
    wanted.map_by = map_policy::node;
    EXPECT_THAT(notes_of({{"SLURM_DISTRIBUTION", "cyclic"}}, wanted), IsEmpty());
}

}  // namespace
}  // namespace muster
