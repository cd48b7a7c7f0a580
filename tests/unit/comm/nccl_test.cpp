// What of the nccl backend is plain values: how factors are applied, what ranks tell of themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "comm/backend/comm_error.hpp"
#include "comm/backend_table.hpp"
#include "comm/nccl/nccl_backend.hpp"
#include "comm/nccl/nccl_enqueue.hpp"

namespace muster::nccl {
namespace {

using testing::HasSubstr;

TEST(plan_reduction, what_nccl_does_by_itself) {
    EXPECT_EQ(plan_reduction(reduction::sum, dtype::f32, {}, 3), (reduction_plan{1, op::sum, false, 1, 1}));
    EXPECT_EQ(plan_reduction(reduction::average, dtype::f32, {}, 3), (reduction_plan{1, op::average, false, 1, 1}));
    EXPECT_EQ(plan_reduction(reduction::product, dtype::i64, {}, 3), (reduction_plan{1, op::product, false, 1, 1}));
    EXPECT_EQ(plan_reduction(reduction::average, dtype::bf16, {}, 4), (reduction_plan{1, op::average, false, 1, 1}));
}

TEST(plan_reduction, factors_of_sums_become_one_where_it_is_exact_enough) {
    EXPECT_EQ(plan_reduction(reduction::sum, dtype::f32, {0.5, 0.1}, 3), (reduction_plan{1, op::sum, true, 0.05, 1}));
    EXPECT_EQ(plan_reduction(reduction::average, dtype::f64, {3, 1}, 4), (reduction_plan{1, op::sum, true, 0.75, 1}));
    EXPECT_EQ(plan_reduction(reduction::average, dtype::f16, {2, 0.25}, 8), (reduction_plan{1, op::sum, true, 0.0625, 1}));
}

TEST(plan_reduction, other_factors_of_narrow_types_and_of_extremes_are_left_to_kernels) {
    EXPECT_EQ(plan_reduction(reduction::average, dtype::bf16, {}, 3), (reduction_plan{1.0 / 3, op::sum, false, 1, 1}));
    EXPECT_EQ(plan_reduction(reduction::sum, dtype::f16, {0.1, 1}, 4), (reduction_plan{0.1, op::sum, false, 1, 1}));
    EXPECT_EQ(plan_reduction(reduction::sum, dtype::f16, {0x1p-20, 1}, 4), (reduction_plan{0x1p-20, op::sum, false, 1, 1}));
    EXPECT_EQ(plan_reduction(reduction::sum, dtype::f16, {1, -1}, 4), (reduction_plan{1, op::sum, false, 1, -1}));
    EXPECT_EQ(plan_reduction(reduction::min, dtype::f32, {2, 3}, 4), (reduction_plan{2, op::min, false, 1, 3}));
    EXPECT_TRUE(plan_reduction(reduction::min, dtype::f32, {2, 3}, 4).needs_kernels());
    EXPECT_FALSE(plan_reduction(reduction::sum, dtype::f32, {2, 3}, 4).needs_kernels());
}

TEST(version_text, both_ways_of_numbering) {
    EXPECT_EQ(version_text(22809), "2.28.9");
    EXPECT_EQ(version_text(21800), "2.18.0");
    EXPECT_EQ(version_text(2708), "2.7.8");
}

identity rank_on(int rank, char const* host) {
    identity who;
    who.nspace = "job.0";
    who.rank = rank;
    who.world_size = 2;
    who.host = host;
    return who;
}

std::array<rank_record, 2> two_ranks(char const* second_host, char const* second_gpu) {
    return {describe_rank(rank_on(0, "n1"), {}, 22809, "GPU-a"), describe_rank(rank_on(1, second_host), {}, 22809, second_gpu)};
}

TEST(rank_records, travel_as_bytes) {
    auto const records = two_ranks("n2", "GPU-b");
    auto const copy = read_record(std::as_bytes(std::span(&records[1], 1)), 1, rank_on(0, "n1"));
    EXPECT_STREQ(copy.gpu, "GPU-b");
    EXPECT_STREQ(copy.place.host, "n2");
    EXPECT_EQ(copy.place.process, this_process());
    EXPECT_THROW(read_record(std::as_bytes(std::span(&records[1], 1)).first(8), 1, rank_on(0, "n1")), comm_error);
}

TEST(rank_records, versions_that_differ_are_told) {
    auto records = two_ranks("n2", "GPU-b");
    EXPECT_NO_THROW(check_records(records, rank_on(0, "n1")));
    records[1].nccl_version = 22703;
    try {
        check_records(records, rank_on(0, "n1"));
        ADD_FAILURE() << "nothing was thrown";
    } catch (comm_error const& problem) {
        EXPECT_EQ(problem.code(), errc::peer_failed);
        EXPECT_THAT(problem.what(), HasSubstr("rank 1 on n2 has NCCL 2.27.3, rank 0 on n1 has 2.28.9"));
    }
}

TEST(rank_records, what_a_rank_cannot_do_is_told_by_all) {
    auto records = two_ranks("n2", "");
    set_fault(records[1], errc::placement, "GPU 3 was asked for");
    try {
        check_records(records, rank_on(0, "n1"));
        ADD_FAILURE() << "nothing was thrown";
    } catch (comm_error const& problem) {
        EXPECT_EQ(problem.code(), errc::placement);
        EXPECT_THAT(problem.what(),
                    HasSubstr("rank 0 of 2 on n1: a communicator on NCCL cannot be made: rank 1 on n2: GPU 3 was asked for"));
        EXPECT_EQ(problem.culprits(), std::vector<int>{1});
    }
}

TEST(rank_records, only_ranks_of_one_host_share_a_gpu) {
    EXPECT_EQ(shared_gpus(two_ranks("n1", "GPU-b")), "");
    EXPECT_EQ(shared_gpus(two_ranks("n2", "GPU-a")), "");
    EXPECT_THAT(shared_gpus(two_ranks("n1", "GPU-a")), HasSubstr("ranks 0 and 1 on n1 share GPU-a"));
}

TEST(choose_backend, device_memory_is_for_nccl_alone) {
    comm_options options;
    options.memory = memory_kind::device;
    try {
        // With a GPU and NCCL it is found; else every row says why not.
        EXPECT_EQ(choose_backend(backend_table(), rank_on(0, "n1"), options).row->name, "nccl");
    } catch (error const& problem) {
        EXPECT_EQ(problem.code(), errc::unavailable);
        EXPECT_THAT(problem.what(), HasSubstr("self: it works on host memory, the tensors lie in device memory"));
        EXPECT_THAT(problem.what(), HasSubstr("nccl: "));
        EXPECT_THAT(problem.what(), HasSubstr("nccl goes in steps by itself, within the nodes and across them"));
    }
    options = {};
    options.backend = "nccl";
    EXPECT_THROW(choose_backend(backend_table(), rank_on(0, "n1"), options), error);
}

}  // namespace
}  // namespace muster::nccl
