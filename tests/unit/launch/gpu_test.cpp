#include "launch/hardware/topology.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "launch/placement/bind_ranks.hpp"
#include "launch/ranks/rank_variables.hpp"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

gpu whole(int index, std::string const& uuid) {
    gpu g;
    g.index = index;
    g.uuid = uuid;
    g.pci = "0000:0" + std::to_string(index) + ":00.0";
    return g;
}

gpu slice(int index, std::string const& uuid, int gpu_instance) {
    gpu g = whole(index, uuid);
    g.mig = mig_slice{"GPU-" + std::string(1, static_cast<char>('a' + index)), gpu_instance, 0};
    return g;
}

/// GPU 0 is whole, GPU 1 has two slices.
std::vector<gpu> const mixed{whole(0, "GPU-a"), slice(1, "MIG-1a", 7), slice(1, "MIG-1b", 8)};

std::vector<std::string> names(std::vector<gpu> const& gpus) {
    std::vector<std::string> all;
    for (auto const& g : gpus) all.push_back(visible_name(g));
    return all;
}

std::string refusal(std::vector<gpu> const& all, std::string const& value) {
    try {
        select_gpus(all, value);
    } catch (error const& e) {
        EXPECT_EQ(e.code(), errc::placement);
        return e.what();
    }
    return {};
}

TEST(visible_devices, select_as_cuda_does) {
    std::vector<gpu> const all{whole(0, "GPU-0a"), whole(1, "GPU-1a"), whole(2, "GPU-1b")};
    EXPECT_THAT(names(select_gpus(all, "2,0")), ElementsAre("2", "0"));
    EXPECT_THAT(names(select_gpus(all, "GPU-1b, 0")), ElementsAre("2", "0"));
    for (auto const* none : {"", " ", "-1", "NoDevFiles", "none"}) EXPECT_THAT(select_gpus(all, none), IsEmpty()) << none;
    for (auto const* bad : {"3", "-2", "GPU-9", "GPU-", "GPU-1", "0,0", "0,GPU-0", "MIG-x", "MIG-GPU-0a/1/0", "x", "0,,1", "0,",
                            "99999999999999999999"})
        EXPECT_NE(refusal(all, bad), "") << bad;
}

TEST(visible_devices, errors_name_the_entry_and_the_value) {
    EXPECT_EQ(refusal({whole(0, "GPU-a"), whole(1, "GPU-b")}, "0,7"),
              "CUDA_VISIBLE_DEVICES=0,7: there is no GPU '7' here, only 2 (0 to 1); unset it or name those that exist");
    EXPECT_EQ(refusal({whole(0, "GPU-a1"), whole(1, "GPU-a2")}, "GPU-a"),
              "CUDA_VISIBLE_DEVICES=GPU-a: 'GPU-a' fits 2 GPUs; give more of the UUID");
    EXPECT_EQ(refusal({}, "0"), "CUDA_VISIBLE_DEVICES=0: there is no GPU here; unset it");
}

TEST(visible_devices, name_slices_in_each_form) {
    EXPECT_THAT(names(select_gpus(mixed, "MIG-1b")), ElementsAre("MIG-1b"));
    EXPECT_THAT(names(select_gpus(mixed, "MIG-GPU-b/7/0")), ElementsAre("MIG-1a"));
    // A GPU in MIG mode is not one device any more: it stands for its slices.
    EXPECT_THAT(names(select_gpus(mixed, "1,0")), ElementsAre("MIG-1a", "MIG-1b", "0"));
    EXPECT_THAT(names(select_gpus(mixed, "GPU-b")), ElementsAre("MIG-1a", "MIG-1b"));
    for (auto const* bad : {"MIG-1", "MIG-", "MIG-GPU-b/9/0", "MIG-GPU-b/7", "MIG-GPU-b/x/0", "MIG-GPU-/7/0/0", "1,MIG-1a"})
        EXPECT_NE(refusal(mixed, bad), "") << bad;
}

TEST(visible_devices, of_drivers_that_name_slices_by_their_gpu) {
    auto old = mixed;
    old[1].uuid = "MIG-GPU-b/7/0";
    old[2].uuid = "MIG-GPU-b/8/0";
    EXPECT_THAT(names(select_gpus(old, "MIG-GPU-b/8/0")), ElementsAre("MIG-GPU-b/8/0"));
}

gpu_list of_vendor(gpu_vendor vendor, int count) {
    gpu_list list;
    for (int i = 0; i < count; ++i) {
        list.gpus.push_back(whole(i, "GPU-" + std::to_string(i)));
        list.gpus.back().vendor = vendor;
    }
    list.note = "found";
    return list;
}

TEST(visible_gpus, read_the_variable_of_the_vendor) {
    auto const nvidia = of_vendor(gpu_vendor::nvidia, 4);
    EXPECT_EQ(visible_gpus(nvidia, {{"ROCR_VISIBLE_DEVICES", "0"}}), nvidia);
    auto const seen = visible_gpus(nvidia, {{"CUDA_VISIBLE_DEVICES", "1,3"}});
    EXPECT_THAT(names(seen.gpus), ElementsAre("1", "3"));
    EXPECT_EQ(seen.note, "found, within CUDA_VISIBLE_DEVICES=1,3");
    auto const intel = of_vendor(gpu_vendor::intel, 4);
    EXPECT_THAT(names(visible_gpus(intel, {{"ZE_AFFINITY_MASK", "2"}}).gpus), ElementsAre("2"));
    EXPECT_EQ(visible_gpus(intel, {{"ZE_AFFINITY_MASK", "0.0,0.1"}}).gpus.size(), 4u);
    EXPECT_EQ(visible_gpus({}, {{"CUDA_VISIBLE_DEVICES", "0"}}).in_vain, "CUDA_VISIBLE_DEVICES=0");
    EXPECT_EQ(visible_gpus({}, {{"CUDA_VISIBLE_DEVICES", "-1"}}).in_vain, "");
    EXPECT_TRUE(visible_gpus({}, {{"CUDA_VISIBLE_DEVICES", ""}}).gpus.empty());
    for (auto const& found : {nvidia, gpu_list{}}) {
        EXPECT_EQ(visible_gpus(found, {{"CUDA_VISIBLE_DEVICES", ""}}).hidden_by, "CUDA_VISIBLE_DEVICES, which is empty");
        EXPECT_EQ(visible_gpus(found, {{"CUDA_VISIBLE_DEVICES", "NoDevFiles"}}).hidden_by, "CUDA_VISIBLE_DEVICES=NoDevFiles");
        EXPECT_EQ(visible_gpus(found, {{"ZE_AFFINITY_MASK", ""}}).hidden_by, "");
    }
    EXPECT_EQ(seen.hidden_by, "");
}

TEST(visible_gpus, of_amd_count_within_what_is_visible_below) {
    auto const amd = of_vendor(gpu_vendor::amd, 8);
    auto const seen = [&](environment const& v) { return names(visible_gpus(amd, v).gpus); };
    EXPECT_THAT(seen({{"ROCR_VISIBLE_DEVICES", "4,5,6"}}), ElementsAre("4", "5", "6"));
    EXPECT_THAT(seen({{"ROCR_VISIBLE_DEVICES", "4,5,6"}, {"HIP_VISIBLE_DEVICES", "2,0"}}), ElementsAre("6", "4"));
    EXPECT_THAT(seen({{"HIP_VISIBLE_DEVICES", "3"}, {"CUDA_VISIBLE_DEVICES", "1"}}), ElementsAre("3"));
    // Slurm says the same list in every variable it knows.
    EXPECT_THAT(seen({{"ROCR_VISIBLE_DEVICES", "6,7"}, {"CUDA_VISIBLE_DEVICES", "6,7"}}), ElementsAre("6", "7"));
    EXPECT_THROW(seen({{"ROCR_VISIBLE_DEVICES", "6,7"}, {"HIP_VISIBLE_DEVICES", "2"}}), error);
}

TEST(scheduler_gpus, are_named_by_its_index) {
    auto const list = scheduler_gpus({{"SLURM_JOB_ID", "7"}, {"CUDA_VISIBLE_DEVICES", "2,3"}, {"SLURM_GPUS_ON_NODE", "4"}});
    ASSERT_EQ(list.gpus.size(), 2u);
    EXPECT_EQ(list.gpus[0].index, 2);
    EXPECT_EQ(list.gpus[0].name, "Slurm's gres/gpu 2");
    EXPECT_EQ(list.gpus[0].uuid, "");
    EXPECT_FALSE(list.gpus[0].known_to_driver);
    EXPECT_EQ(list.note,
              "known to Slurm only (CUDA_VISIBLE_DEVICES=2,3); no driver here sees them, so their NUMA node is unknown");
}

TEST(scheduler_gpus, from_each_variable) {
    auto const count = [](environment v) {
        v.set("SLURM_JOB_ID", "7");
        return scheduler_gpus(v).gpus.size();
    };
    EXPECT_EQ(count({{"SLURM_STEP_GPUS", "0,1,2"}, {"SLURM_GPUS_ON_NODE", "4"}}), 3u);
    EXPECT_EQ(count({{"SLURM_GPUS_ON_NODE", "4"}}), 4u);
    EXPECT_EQ(count({{"SLURM_JOB_GPUS", "0,1"}}), 0u);  // of the batch script's node, inherited by steps that have none
    EXPECT_EQ(count({{"CUDA_VISIBLE_DEVICES", ""}, {"SLURM_GPUS_ON_NODE", "4"}}), 0u);
    for (auto const* bad : {"", "-1", "x", "99999999999", "100000"}) EXPECT_EQ(count({{"SLURM_GPUS_ON_NODE", bad}}), 0u) << bad;
    EXPECT_TRUE(scheduler_gpus({{"CUDA_VISIBLE_DEVICES", "0"}}).gpus.empty());  // no job: nobody vouches for them
    auto const pbs = scheduler_gpus({{"PBS_JOBID", "7"}, {"CUDA_VISIBLE_DEVICES", "GPU-x,GPU-y"}});
    EXPECT_THAT(names(pbs.gpus), ElementsAre("GPU-x", "GPU-y"));
    EXPECT_THAT(pbs.note, HasSubstr("known to PBS only"));
}

/// What rank `rank` of as many as there are GPUs gets in its environment.
environment variables_of(std::vector<gpu> const& gpus, gpu_visibility seen, std::size_t rank, environment v = {}) {
    topology t;
    t.host = "h";
    t.gpus = gpus;
    for (int c = 0; c < 8; ++c) t.cores.push_back({cpuset{{c}}, 0, 0});
    set_gpu_variables(v, bind_ranks(t, {.gpus_seen = seen}, static_cast<int>(gpus.size())).at(rank));
    return v;
}

TEST(gpu_variables, for_each_visibility) {
    std::vector<gpu> const gpus{whole(1, "GPU-b"), whole(3, "GPU-d"), whole(4, "GPU-e")};
    auto const all = variables_of(gpus, gpu_visibility::all, 1);
    EXPECT_EQ(all, (environment{{"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
                                {"CUDA_VISIBLE_DEVICES", "1,3,4"},
                                {"JAX_LOCAL_DEVICE_IDS", "1"},
                                {"MUSTER_GPU_INDEX", "1"},
                                {"MUSTER_GPU_UUID", "GPU-d"}}));
    auto const own = variables_of(gpus, gpu_visibility::own, 1);
    EXPECT_EQ(own.get("CUDA_VISIBLE_DEVICES"), "3");
    EXPECT_EQ(own.get("MUSTER_GPU_INDEX"), "0");
    EXPECT_EQ(own.get("JAX_LOCAL_DEVICE_IDS"), "0");
    EXPECT_EQ(own.get("MUSTER_GPU_UUID"), "GPU-d");
    auto const first = variables_of(gpus, gpu_visibility::own_first, 1);
    EXPECT_EQ(first.get("CUDA_VISIBLE_DEVICES"), "3,1,4");
    EXPECT_EQ(first.get("MUSTER_GPU_INDEX"), "0");
    EXPECT_FALSE(own.has("LOCAL_RANK"));  // it stays the local rank, whatever is visible
}

TEST(gpu_variables, a_slice_is_seen_alone) {
    for (auto const seen : {gpu_visibility::all, gpu_visibility::own, gpu_visibility::own_first}) {
        auto const v = variables_of(mixed, seen, 2);
        EXPECT_EQ(v.get("CUDA_VISIBLE_DEVICES"), "MIG-1b");
        EXPECT_EQ(v.get("MUSTER_GPU_INDEX"), "0");
    }
    EXPECT_EQ(variables_of(mixed, gpu_visibility::all, 0).get("CUDA_VISIBLE_DEVICES"), "0");
}

TEST(gpu_variables, of_amd_replace_those_applied_on_top) {
    auto const v = variables_of(of_vendor(gpu_vendor::amd, 2).gpus, gpu_visibility::own, 1,
                                {{"HIP_VISIBLE_DEVICES", "0"}, {"CUDA_VISIBLE_DEVICES", "1"}});
    EXPECT_EQ(v.get("ROCR_VISIBLE_DEVICES"), "1");
    EXPECT_FALSE(v.has("HIP_VISIBLE_DEVICES"));
    EXPECT_FALSE(v.has("CUDA_VISIBLE_DEVICES"));
}

TEST(gpu_variables, of_what_only_the_scheduler_knows_stay_as_they_are) {
    environment const job{{"SLURM_JOB_ID", "7"}, {"CUDA_VISIBLE_DEVICES", "2,3"}};
    auto const gpus = scheduler_gpus(job).gpus;
    auto const all = variables_of(gpus, gpu_visibility::all, 1, job);
    EXPECT_EQ(all.get("CUDA_VISIBLE_DEVICES"), "2,3");
    EXPECT_EQ(all.get("MUSTER_GPU_INDEX"), "1");
    EXPECT_FALSE(all.has("MUSTER_GPU_UUID"));
    EXPECT_EQ(variables_of(gpus, gpu_visibility::own, 1, job).get("CUDA_VISIBLE_DEVICES"), "3");
    EXPECT_EQ(variables_of(gpus, gpu_visibility::own_first, 1, job).get("CUDA_VISIBLE_DEVICES"), "3,2");
}

}  // namespace
}  // namespace muster
