#include "launch/commands/commands.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace muster {
namespace {

using state = finding::state;

TEST(findings, no_gpu_is_a_fault_only_where_the_job_has_some) {
    topology machine;
    machine.host = "n0";
    machine.gpu_note = "no NVIDIA driver here";
    auto found = describe_no_gpu(machine, std::nullopt, false);
    EXPECT_EQ(found.how, state::note);
    EXPECT_EQ(found.detail, "none: no NVIDIA driver here");
    EXPECT_EQ(describe_no_gpu(machine, 0, false), found);
    found = describe_no_gpu(machine, 4, false);
    EXPECT_EQ(found.how, state::missing);
    EXPECT_EQ(found.detail, "the job has 4 on n0, and here are none: no NVIDIA driver here");
    EXPECT_EQ(found.advice, "see nvidia-smi -L; if it shows none either, ask for another node and tell the site");
}

TEST(findings, a_variable_that_hides_the_gpus_is_named) {
    topology machine;
    machine.host = "n0";
    machine.gpu_note = "NVML";
    machine.gpu_detail = "more";
    machine.gpus_hidden_by = "CUDA_VISIBLE_DEVICES, which is empty";
    auto const found = describe_no_gpu(machine, 2, true);
    EXPECT_EQ(found.detail, "the job has 2 on n0, and here are none visible (CUDA_VISIBLE_DEVICES, which is empty): NVML (more)");
    EXPECT_EQ(found.advice, "take out what sets that variable, in the job's script or the shell's start files");
    EXPECT_EQ(describe_no_gpu(machine, std::nullopt, false).advice,
              "a slot is a core then; if GPUs are wanted, take out what sets that variable, in the job's script or the shell's "
              "start files");
}

TEST(findings, of_binding_name_the_way_around_a_refusal) {
    EXPECT_EQ(describe_binding(0, bind_policy::share).how, state::ok);
    auto const found = describe_binding(EPERM, bind_policy::share);
    EXPECT_EQ(found.how, state::missing);
    EXPECT_EQ(found.detail, "sched_setaffinity: Operation not permitted");
    EXPECT_THAT(found.advice, testing::HasSubstr("--bind-to none"));
    EXPECT_EQ(describe_binding(EPERM, bind_policy::none).how, state::note);
}

TEST(findings, of_a_machine_of_pbs) {
    EXPECT_EQ(describe_pbs("/opt/pbs/bin/qsub", "/opt/pbs/bin/qstat"),
              (finding{state::ok, "PBS", "/opt/pbs/bin/qsub, /opt/pbs/bin/qstat", ""}));
    EXPECT_EQ(describe_pbs("", "").detail, "no qsub, no qstat on PATH");
    EXPECT_EQ(describe_pbs("/bin/qsub", "").detail, "no qstat on PATH");
}

}  // namespace
}  // namespace muster
