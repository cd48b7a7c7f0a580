#include "launch/placement/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "tests/unit/launch/machine_files.hpp"

namespace muster {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

allocation job(int nodes, std::optional<int> gpus) {
    allocation a{scheduler_kind::slurm, "7", {}, std::nullopt, true};
    for (int n = 0; n < nodes; ++n) {
        std::string const name = "n" + std::to_string(n);
        a.nodes.push_back({name, name, 4, gpus});
    }
    return a;
}

bool is_first(node const& n) {
    return n.name == "n0";
}

TEST(plan, tells_what_hides_the_gpus) {
    auto machine = machine_of("polaris");
    machine.gpus.clear();
    machine.host = "n0";
    machine.gpu_note = "NVML";
    machine.gpus_in_node = 4;
    auto const notes = [&] { return make_plan(job(1, std::nullopt), {}, {machine, std::nullopt, {}}).notes; };
    EXPECT_THAT(notes(), Contains("no GPU, so slots are those of the job: NVML"));
    machine.gpus_hidden_by = "CUDA_VISIBLE_DEVICES, which is empty";
    EXPECT_THAT(notes(),
                Contains("the GPUs of n0 are hidden from this job by CUDA_VISIBLE_DEVICES, which is empty, so slots are those "
                         "of the job: NVML"));
    machine.gpus_in_node = 0;
    EXPECT_THAT(notes(),
                Contains(HasSubstr("GPUs, if there are any, are hidden from this job by CUDA_VISIBLE_DEVICES, which is empty")));
}

TEST(plan, knows_this_node_only_by_itself) {
    auto const p = make_plan(job(2, 4), {}, {std::nullopt, machine_of("polaris"), is_first});
    EXPECT_THAT(p.shape_of_node, ElementsAre(0, -1));
    EXPECT_EQ(p.unknown_nodes(), 1);
    EXPECT_EQ(p.binding_of({0, 3})->cores.to_list(), "0-7,32-39");
    EXPECT_EQ(p.binding_of({1, 0}), nullptr);
    EXPECT_THAT(p.notes, ElementsAre(HasSubstr("GPUs and cores of 1 of 2 nodes are not known from here")));
    EXPECT_THAT(plan_table(p), HasSubstr("4     n1    ?"));
    auto const json = nlohmann::json::parse(plan_json(p));
    EXPECT_EQ(json["schema"], "muster.plan/1");
    EXPECT_EQ(json["job"], "7");
    EXPECT_EQ(json["world_size"], 8);
    EXPECT_EQ(json["nodes"][0]["gpus"], 4);
    EXPECT_TRUE(json["nodes"][1]["gpus"].is_null());
    EXPECT_EQ(json["ranks"][2]["gpu"]["numa"], 1);
    EXPECT_EQ(json["ranks"][2]["gpu"]["visible_devices"], "0,1,2,3");
    EXPECT_EQ(json["ranks"][4]["known"], false);
    EXPECT_EQ(json["ranks"][4]["host"], "n1");
    EXPECT_EQ(json["ranks"][4]["local_rank"], 0);
    EXPECT_TRUE(json["ranks"][4]["cpus"].is_null());
}

TEST(plan, of_a_job_elsewhere_knows_no_node) {
    auto const p = make_plan(job(3, 4), {}, {});
    EXPECT_EQ(p.unknown_nodes(), 3);
    EXPECT_TRUE(p.shapes.empty());
}

TEST(plan, takes_every_node_to_be_like_a_machine) {
    // The scheduler does not say how many GPUs there are: the machine does.
    auto silent = job(2, std::nullopt);
    for (auto& n : silent.nodes) n.slots = 8;
    auto const p = make_plan(silent, {.ranks = 6}, {machine_of("polaris"), std::nullopt, nullptr});
    EXPECT_THAT(p.map.ranks_per_node, ElementsAre(4, 2));
    EXPECT_THAT(p.shape_of_node, ElementsAre(0, 1));
    EXPECT_EQ(p.binding_of({1, 1})->device->index, 1);
    EXPECT_TRUE(p.notes.empty());
    auto const many = make_plan(job(10'000, 4), {}, {machine_of("polaris"), std::nullopt, nullptr});
    EXPECT_EQ(many.shapes.size(), 1u);
    EXPECT_EQ(many.map.world_size(), 40'000);
}

TEST(plan, is_refused_as_the_run_would_be) {
    // The scheduler counts 8 GPUs where the machine has 4.
    EXPECT_THROW(make_plan(job(1, 8), {}, {machine_of("polaris"), std::nullopt, nullptr}), error);
}

TEST(plan, notes_shared_gpus_and_gpus_that_only_the_scheduler_knows) {
    auto const shared = make_plan(job(1, 4), {.slots_per_node = 8}, {machine_of("polaris"), std::nullopt, nullptr});
    EXPECT_THAT(shared.notes,
                ElementsAre("polaris: 8 ranks share 4 GPUs (--slots-per-node 8), so they share its memory and time too"));
    EXPECT_THAT(shared.binding_of({0, 5})->why, HasSubstr("shares its GPU with 1 other rank (--slots-per-node 8)"));
    auto machine = machine_of("laptop");
    auto const known = scheduler_gpus({{"SLURM_JOB_ID", "7"}, {"CUDA_VISIBLE_DEVICES", "2,3"}});
    machine.gpus = known.gpus;
    machine.gpu_note = known.note;
    auto const p = make_plan(job(1, 2), {}, {machine, std::nullopt, nullptr});
    EXPECT_THAT(plan_table(p), HasSubstr("2 (Slurm's gres/gpu 2)"));
    EXPECT_THAT(p.notes, ElementsAre(HasSubstr("GPUs known to Slurm only (CUDA_VISIBLE_DEVICES=2,3)")));
    EXPECT_THAT(p.binding_of({0, 0})->why, HasSubstr("where the GPUs are is not known"));
}

}  // namespace
}  // namespace muster
