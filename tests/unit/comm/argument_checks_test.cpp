// What is said of arguments that cannot be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "comm/backend/argument_checks.hpp"

namespace muster::detail {
namespace {

using testing::HasSubstr;
using kind = collective::kind;

class arguments : public testing::Test {
  protected:
    collective of(kind what, std::size_t in_count, std::size_t out_count) {
        return {what, {a.data(), in_count}, {b.data(), out_count}};
    }
    std::string fault(collective const& what) const { return fault_of(what, {.rank = 1, .size = 4}); }

    std::vector<float> a = std::vector<float>(100), b = std::vector<float>(100);
};

TEST_F(arguments, a_share_has_the_share_s_count) {
    EXPECT_EQ(fault(of(kind::reducescatter, 10, 3)), "");
    EXPECT_EQ(fault(of(kind::reducescatter, 10, 2)), "\"in\" has 10 elements, so rank 1 of 4 gets 3 and \"out\" has 2");
    EXPECT_EQ(fault(of(kind::reducescatter, 3, 1)), "");
    EXPECT_EQ(fault(of(kind::reducescatter, 1, 0)), "");
}

TEST_F(arguments, a_share_may_lie_at_its_place_in_the_input_and_nowhere_else_in_it) {
    auto what = of(kind::reducescatter, 10, 3);
    what.out.data = a.data() + 3;
    EXPECT_EQ(fault(what), "");
    what.out.data = a.data() + 4;
    EXPECT_THAT(fault(what), HasSubstr("not at this rank's share"));
}

TEST_F(arguments, adasum_and_unknown_reductions_are_refused) {
    auto what = of(kind::allreduce, 10, 10);
    what.how = reduction::product;
    EXPECT_EQ(fault(what), "");
    what.how = reduction::adasum;
    EXPECT_THAT(fault(what), HasSubstr("exchange::allreduce only"));
    what.how = static_cast<reduction>(6);
    EXPECT_EQ(fault(what), "6 is no reduction");
}

TEST_F(arguments, uneven_allgathers_need_matching_counts) {
    auto what = of(kind::allgather, 2, 10);
    what.receive_counts = {1, 2, 3, 4};
    EXPECT_EQ(fault(what), "");
    what.in.data = b.data() + 1;
    EXPECT_EQ(fault(what), "");
    what.in.data = b.data();
    EXPECT_THAT(fault(what), HasSubstr("not at this rank's place"));
    what = of(kind::allgather, 3, 10);
    what.receive_counts = {1, 2, 3, 4};
    EXPECT_EQ(fault(what), "\"in\" has 3 elements, \"counts\" says 2 for rank 1");
    what = of(kind::allgather, 2, 9);
    what.receive_counts = {1, 2, 3, 4};
    EXPECT_EQ(fault(what), "\"counts\" add up to 10, \"out\" has 9 elements");
    what.receive_counts = {1, 2};
    EXPECT_EQ(fault(what), "\"counts\" has 2 entries for 4 ranks");
    what.receive_counts = {std::numeric_limits<std::size_t>::max() / 2, std::numeric_limits<std::size_t>::max() / 2, 3, 4};
    EXPECT_THAT(fault(what), HasSubstr("more than memory can hold"));
}

TEST_F(arguments, alltoall_counts_add_up) {
    auto what = of(kind::alltoall, 10, 8);
    what.send_counts = {1, 2, 3, 4};
    what.receive_counts = {0, 2, 6, 0};
    EXPECT_EQ(fault(what), "");
    what.receive_counts = {0, 3, 5, 0};
    EXPECT_EQ(fault(what), "rank 1 sends itself 2 elements and receives 3 from itself");
    what.receive_counts = {0, 2, 5, 0};
    EXPECT_EQ(fault(what), "\"receive_counts\" add up to 7, \"out\" has 8 elements");
    what.send_counts = {1, 2, 3, 5};
    EXPECT_EQ(fault(what), "\"send_counts\" add up to 11, \"in\" has 10 elements");
    what.send_counts = {1};
    EXPECT_EQ(fault(what), "\"send_counts\" has 1 entries for 4 ranks");
}

TEST_F(arguments, exchanges_have_a_peer_and_memory_apart) {
    auto what = of(kind::sendrecv, 10, 7);
    what.root = 3;
    EXPECT_EQ(fault(what), "");
    what.root = 4;
    EXPECT_EQ(fault(what), "the peer 4 does not lie in a world of 4");
    what.root = 1;
    EXPECT_EQ(fault(what), "rank 1 sends itself 10 elements and receives 7 from itself");
    what.root = 0;
    what.out.data = a.data() + 9;
    EXPECT_THAT(fault(what), HasSubstr("overlap"));
}

TEST_F(arguments, factors_are_finite_and_for_floating_types) {
    auto what = of(kind::allreduce, 8, 8);
    what.scale = {0.5, 2};
    EXPECT_EQ(fault(what), "");
    what.scale.after = std::numeric_limits<double>::infinity();
    EXPECT_THAT(fault(what), HasSubstr("not both finite"));
    std::array<std::int8_t, 8> small{};
    what = {kind::reducescatter, view_of(std::span(small)), view_of(std::span(small).subspan(2, 2))};
    EXPECT_EQ(fault(what), "");
    what.scale.before = 0.5;
    EXPECT_THAT(fault(what), HasSubstr("the factors 0.5 before and 1 after would turn i8 into no integers"));
    what.scale = {};
    what.how = reduction::average;
    EXPECT_THAT(fault(what), HasSubstr("the average of i8"));
}

TEST_F(arguments, memory_is_what_the_backend_reaches) {
    auto what = of(kind::allreduce, 8, 8);
    what.in.where = what.out.where = memory_kind::device;
    EXPECT_THAT(fault(what), HasSubstr("\"in\" lies in device memory"));
    EXPECT_EQ(fault_of(what, {.rank = 0, .size = 2, .host_memory = false, .device_memory = true}), "");
    what.out.where = memory_kind::host;
    EXPECT_EQ(fault_of(what, {.rank = 0, .size = 2, .host_memory = true, .device_memory = true}),
              "\"in\" lies in device memory, \"out\" in host memory");
}

TEST(process_sets, are_lists_of_distinct_ranks) {
    EXPECT_EQ(fault_of_set(std::array{2, 0}, 3), "");
    EXPECT_EQ(fault_of_set({}, 3), "a process set needs at least one rank");
    EXPECT_EQ(fault_of_set(std::array{1, 3}, 3), "the rank 3 does not lie in a world of 3");
    EXPECT_EQ(fault_of_set(std::array{-1}, 3), "the rank -1 does not lie in a world of 3");
    EXPECT_EQ(fault_of_set(std::array{1, 2, 1}, 3), "rank 1 is given twice");
}

}  // namespace
}  // namespace muster::detail
