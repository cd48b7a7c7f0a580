#include "launch/watch/failure_report.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(failure_report, says_what_happened_what_to_do_and_what_was_written_last) {
    EXPECT_EQ(describe(failure_report{"rank 1 on a", "exited with code 3", duration(2), 0, "", "", ""}),
              "rank 1 on a exited with code 3, 2 s after the start");
    EXPECT_EQ(describe(failure_report{"rank 1 on a", "exited with code 3", duration(2), 7, "mend it", "rank 0 on a had ended",
                                      "one\ntwo\n"}),
              "rank 1 on a exited with code 3, 2 s after the start; ending the other 7\n  rank 0 on a had ended\n  mend it\n"
              "  the last it wrote on stderr:\n  | one\n  | two");
}

TEST(failure_report, a_program_for_horovod_gets_its_option) {
    auto const text = describe(failure_report{"rank 0 on a", "exited with code 1", duration(2), 0, "", "",
                                              "ModuleNotFoundError: No module named 'horovod.torch'\n"});
    EXPECT_NE(text.find("muster run --as-horovod"), std::string::npos) << text;
    EXPECT_EQ(
        describe(failure_report{"rank 0 on a", "exited with code 1", duration(2), 0, "", "", "No module named 'horovod'", false}),
        "rank 0 on a exited with code 1, 2 s after the start\n  muster has Horovod's names for it: muster run --as-horovod");
}

TEST(failure_report, what_muster_does_not_have_of_horovod_is_said) {
    for (auto const* name : {"horovod.spark", "horovod.ray", "horovod.mxnet", "horovod.torch.nothing"}) {
        auto const text = describe(failure_report{"rank 0 on a", "exited with code 1", duration(2), 0, "", "",
                                                  "ModuleNotFoundError: No module named '" + std::string(name) + "'\n"});
        EXPECT_NE(text.find("muster has no " + std::string(name) + "; docs/from-horovod.md"), std::string::npos) << text;
        EXPECT_EQ(text.find("--as-horovod"), std::string::npos) << text;
    }
}

TEST(failure_report, a_data_loaders_worker_without_room_points_to_dev_shm) {
    for (auto const* line : {"RuntimeError: DataLoader worker (pid 5) is killed by signal: Bus error. It is possible that "
                             "dataloader's workers are out of shared memory.",
                             "RuntimeError: unable to write to file </torch_9_1_0>: No space left on device (28)"}) {
        failure_report failure{"rank 0 on a", "exited with code 1", duration(2), 0, "", "", line};
        EXPECT_NE(describe(failure).find("see df /dev/shm"), std::string::npos) << line;
        failure.advice = "/dev/shm is full there";
        EXPECT_EQ(describe(failure).find("see df /dev/shm"), std::string::npos) << line;
    }
    EXPECT_EQ(describe(failure_report{"rank 0 on a", "exited with code 1", duration(2), 0, "", "", "No space left on device"})
                  .find("/dev/shm"),
              std::string::npos);
}

TEST(failure_report, only_bad_ends_are_faults) {
    EXPECT_EQ(find_end_fault(0), std::nullopt);
    EXPECT_EQ(find_end_fault(3 << 8), (end_fault{"exited with code 3", 3, ""}));
    EXPECT_NE(find_end_fault(SIGXFSZ)->advice.find("ulimit -f"), std::string::npos);
    EXPECT_NE(find_end_fault(SIGXCPU)->advice.find("ulimit -t"), std::string::npos);
    EXPECT_NE(find_end_fault(SIGBUS)->advice.find("was cut off"), std::string::npos);
    EXPECT_EQ(find_end_fault(11), (end_fault{"was killed by signal 11 (SIGSEGV)", 128 + 11, ""}));
    auto const killed = find_end_fault(9);
    ASSERT_TRUE(killed);
    EXPECT_EQ(killed->exit_code, 128 + 9);
    EXPECT_TRUE(killed->advice.starts_with("muster did not send it"));
}

TEST(failure_report, full_memory_is_said_where_the_kernel_counted_it) {
    EXPECT_EQ(find_end_fault(9, memory_verdict::in_cgroup)->what, "was killed by signal 9 (SIGKILL): out of memory");
    EXPECT_TRUE(find_end_fault(1 << 8, memory_verdict::in_cgroup)->advice.starts_with("the kernel killed a process"));
    EXPECT_NE(find_end_fault(9, memory_verdict::either)->advice.find("or the whole machine was full: dmesg"), std::string::npos);
    EXPECT_NE(find_end_fault(9, memory_verdict::none)->advice.find("did not rise"), std::string::npos);
    EXPECT_NE(find_end_fault(9, memory_verdict::on_node)->advice.find("see dmesg"), std::string::npos);
    EXPECT_TRUE(find_end_fault(1 << 8, memory_verdict::shm_full)->advice.starts_with("/dev/shm is full"));
    EXPECT_EQ(find_end_fault(15, memory_verdict::none)->advice, "");
    EXPECT_EQ(find_end_fault(0, memory_verdict::in_cgroup), std::nullopt);
}

TEST(failure_report, what_a_scheduler_sends_to_all_need_not_be_the_ranks_fault) {
    EXPECT_TRUE(may_be_sent_to_all(9));
    EXPECT_TRUE(may_be_sent_to_all(15));
    EXPECT_TRUE(may_be_sent_to_all(14)) << "Flux, at the end of a job's time";
    EXPECT_TRUE(may_be_sent_to_all(1));
    EXPECT_FALSE(may_be_sent_to_all(11));
    EXPECT_FALSE(may_be_sent_to_all(143 << 8));
}

}  // namespace
}  // namespace muster
