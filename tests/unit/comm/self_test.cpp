// A communicator of one rank, and the checks of arguments, which are the same for every backend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "comm/backend/comm_error.hpp"
#include "comm/communicator.hpp"
#include "comm/fail_together.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

class self : public testing::Test {
  protected:
    static communicator make() {
        identity who;
        who.host = "n7";
        comm_options options;
        options.backend = "self";
        return communicator::create(who, options);
    }
    template <typename Body>
    static std::string usage_of(Body&& body) {
        try {
            body();
        } catch (comm_error const& problem) {
            EXPECT_EQ(problem.code(), errc::usage) << problem.what();
            return problem.what();
        }
        ADD_FAILURE() << "nothing was thrown";
        return {};
    }
    communicator alone = make();
    std::vector<float> a = std::vector<float>(8, 2.0f);
    std::vector<float> b = std::vector<float>(8, 0.0f);
    tensor_view in = view_of(std::span(a));
    tensor_view out = view_of(std::span(b));
};

TEST_F(self, is_what_it_says) {
    EXPECT_EQ(alone.rank(), 0);
    EXPECT_EQ(alone.size(), 1);
    EXPECT_EQ(alone.backend(), "self");
    EXPECT_EQ(alone.host_of(0), "n7");
    EXPECT_EQ(alone.native(), nullptr);
    EXPECT_THROW(static_cast<void>(alone.host_of(1)), std::out_of_range);
}

TEST_F(self, every_collective_gives_back_its_input) {
    for (auto const how : {reduction::sum, reduction::average, reduction::min, reduction::max, reduction::product}) {
        std::fill(b.begin(), b.end(), 0.0f);
        alone.allreduce("x", in, out, how).wait();
        EXPECT_EQ(a, b);
    }
    std::fill(b.begin(), b.end(), 0.0f);
    auto gathering = alone.allgather("x", in, out);
    EXPECT_TRUE(gathering.done());
    EXPECT_TRUE(gathering.done());
    gathering.wait();
    EXPECT_EQ(a, b);
    alone.broadcast("x", in, 0).wait(duration{1.0});
    alone.barrier().wait();
    alone.progress();
}

TEST_F(self, its_share_and_what_it_sends_itself_are_its_input) {
    std::array<std::size_t, 1> const counts{8};
    auto const check = [&](operation done) {
        done.wait();
        EXPECT_EQ(a, b);
        std::fill(b.begin(), b.end(), 0.0f);
    };
    check(alone.reducescatter("x", in, out, reduction::sum));
    check(alone.allgather("x", in, out, counts));
    check(alone.alltoall("x", in, counts, out, counts));
    check(alone.sendrecv("x", 0, in, out));
}

TEST_F(self, factors_hold_for_one_rank_too) {
    alone.allreduce("x", in, out, reduction::average, {.before = 0.5, .after = 3}).wait();
    EXPECT_EQ(b, std::vector<float>(8, 3.0f));
    std::vector<bfloat16> values(8, bfloat16(2.0f));
    alone.allreduce("x", view_of(std::span(values)), reduction::max, {.before = -2}).wait();
    EXPECT_EQ(values, std::vector<bfloat16>(8, bfloat16(-4.0f)));
}

TEST_F(self, a_set_of_one_is_a_communicator) {
    auto set = alone.include(std::array{0});
    ASSERT_TRUE(set);
    EXPECT_EQ(set.size(), 1);
    set.allreduce("x", in, out, reduction::sum).wait();
    EXPECT_EQ(a, b);
    EXPECT_THAT(usage_of([&] { alone.include(std::array{1}); }), HasSubstr("include (rank 0 of 1 on n7): the rank 1 does not"));
}

TEST_F(self, an_empty_communicator_says_so) {
    auto moved = std::move(alone);
    EXPECT_FALSE(alone);  // NOLINT(bugprone-use-after-move): that is what is tested
    EXPECT_EQ(alone.rank(), -1);
    EXPECT_EQ(alone.size(), 0);
    EXPECT_EQ(alone.native(), nullptr);
    EXPECT_THAT(usage_of([&] { alone.barrier().wait(); }), HasSubstr("not in the process set"));
    moved.close();
    EXPECT_FALSE(moved);
}

TEST_F(self, nothing_is_a_tensor_too) {
    alone.allreduce("nothing", {}, {}, reduction::sum).wait();
    alone.allgather("nothing", {}, {}).wait();
    alone.reducescatter("nothing", {}, {}, reduction::sum).wait();
    alone.broadcast("nothing", {}, 0).wait();
}

TEST_F(self, wrong_arguments_name_tensor_rank_host_and_values) {
    auto other = out;
    other.count = 7;
    auto const message = usage_of([&] { alone.allreduce("conv1.weight", in, other, reduction::sum).wait(); });
    EXPECT_THAT(message, HasSubstr("\"conv1.weight\" (rank 0 of 1 on n7)"));
    EXPECT_THAT(message, HasSubstr("\"in\" has 8 elements, \"out\" 7"));

    other = out;
    other.type = dtype::i32;
    EXPECT_THAT(usage_of([&] { alone.allreduce("x", in, other, reduction::sum).wait(); }),
                HasSubstr("\"in\" is f32, \"out\" is i32"));
    other = out;
    other.where = memory_kind::device;
    EXPECT_THAT(usage_of([&] { alone.allreduce("x", in, other, reduction::sum).wait(); }),
                HasSubstr("\"out\" lies in device memory"));
    EXPECT_THAT(usage_of([&] {
                    alone.allreduce("x", {nullptr, 3}, out, reduction::sum).wait();
                }),
                HasSubstr("3 elements at a null pointer"));
    EXPECT_THAT(usage_of([&] {
                    alone.allreduce("x", {a.data(), 4}, {a.data() + 2, 4}, reduction::sum).wait();
                }),
                HasSubstr("overlap"));
    EXPECT_THAT(usage_of([&] {
                    alone.allreduce("x", {reinterpret_cast<char*>(a.data()) + 1, 4}, {b.data(), 4}, reduction::sum).wait();
                }),
                HasSubstr("not aligned"));
    EXPECT_THAT(usage_of([&] {
                    alone.allreduce("x", {a.data(), std::size_t{1} << 62}, reduction::sum).wait();
                }),
                HasSubstr("more than memory"));
    EXPECT_THAT(usage_of([&] { alone.broadcast("x", in, 1).wait(); }), HasSubstr("the root 1 does not lie in a world of 1"));
    EXPECT_THAT(usage_of([&] { alone.broadcast("x", in, -1).wait(); }), HasSubstr("the root -1"));
    EXPECT_THAT(usage_of([&] {
                    alone.allgather("x", in, {b.data(), 4}).wait();
                }),
                HasSubstr("\"out\" needs 8 of them for 1 ranks and has 4"));
    EXPECT_THAT(usage_of([&] {
                    alone.allgather("x", {a.data(), 4}, {a.data() + 2, 4}).wait();
                }),
                HasSubstr("not at this rank's place"));
    alone.allreduce("the communicator still works", in, out, reduction::sum).wait();
}

TEST_F(self, averages_of_integers_are_refused) {
    std::vector<std::int32_t> numbers(3);
    auto const view = view_of(std::span(numbers));
    EXPECT_THAT(usage_of([&] { alone.allreduce("n", view, view, reduction::average).wait(); }),
                HasSubstr("the average of i32 is not an integer"));
}

TEST_F(self, a_rank_outside_its_world_is_refused) {
    identity who;
    who.rank = 3;
    who.world_size = 2;
    EXPECT_THAT(usage_of([&] { communicator::create(who); }), HasSubstr("rank 3 does not lie in a world of 2"));
}

TEST_F(self, agreement_passes_success_and_reports_failure) {
    throw_if_any_failed(alone, "nothing", std::exception_ptr{});
    EXPECT_EQ(run_on_all(alone, "counting", [] { return 3; }), 3);
    try {
        run_on_all(alone, "opening x.h5", [] { throw error(errc::not_found, "no such file"); });
        FAIL();
    } catch (comm_error const& problem) {
        EXPECT_EQ(problem.code(), errc::not_found);
        EXPECT_THAT(problem.what(), HasSubstr("opening x.h5 failed on 1 of 1 ranks:\n  rank 0 (n7): no such file"));
    }
    try {
        throw_if_any_failed(alone, "clean /x", own_failure{errc::io, "no space"}, member_is::node);
        FAIL();
    } catch (comm_error const& problem) {
        EXPECT_STREQ(problem.what(), "clean /x failed on 1 of 1 nodes:\n  n7: no space");
    }
}

}  // namespace
}  // namespace muster
