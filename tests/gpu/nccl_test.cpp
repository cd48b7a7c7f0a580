// The nccl backend on the real NCCL, through the communicator, with as many ranks as were started (`muster run`).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <numeric>

#include "comm/backend/comm_error.hpp"
#include "comm/backend/pmix_rendezvous.hpp"
#include "nccl_test.hpp"

namespace muster {
namespace {

using test::gpu_vector;
using test::ranks;
using testing::AnyOf;

std::vector<float> ramp(std::size_t count, float first) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), first);
    return values;
}

TEST(nccl, allreduce_of_many_sizes) {
    auto const size = static_cast<float>(ranks().size());
    for (std::size_t const count : {std::size_t{1}, std::size_t{1000}, (std::size_t{1} << 20) + 3}) {
        gpu_vector<float> const in{std::vector<float>(count, static_cast<float>(ranks().rank() + 1))},
            out{std::vector<float>(count)};
        ranks().allreduce("grad", in.view(), out.view(), reduction::sum).wait();
        for (float const each : out.values()) ASSERT_EQ(each, size * (size + 1) / 2);
    }
}

TEST(nccl, every_reduction_and_type) {
    int const rank = ranks().rank(), size = ranks().size();
    gpu_vector<std::int64_t> const whole(std::vector<std::int64_t>{rank, -rank, 3});
    ranks().allreduce("i64", whole.view(), reduction::max).wait();
    EXPECT_EQ(whole.values(), (std::vector<std::int64_t>{size - 1, 0, 3}));
    gpu_vector<std::int8_t> const small(std::vector<std::int8_t>{static_cast<std::int8_t>(rank)});
    ranks().allreduce("i8", small.view(), reduction::min).wait();
    EXPECT_EQ(small.values(), std::vector<std::int8_t>{0});
    gpu_vector<double> const wide(std::vector<double>{2, 0.5});
    ranks().allreduce("f64", wide.view(), reduction::product).wait();
    EXPECT_EQ(wide.values(), (std::vector<double>{std::pow(2.0, size), std::pow(0.5, size)}));
    gpu_vector<float> const scaled(std::vector<float>{8});
    ranks().allreduce("scaled", scaled.view(), reduction::sum, {0.5, 3}).wait();
    EXPECT_FLOAT_EQ(scaled.values()[0], 12.0f * static_cast<float>(size));
    gpu_vector<bfloat16> const brain(std::vector<bfloat16>{bfloat16(300)});
    ranks().allreduce("bf16", brain.view(), reduction::average).wait();
    EXPECT_NEAR(static_cast<float>(brain.values()[0]), 300, 2);
    gpu_vector<float> const least(std::vector<float>{static_cast<float>(rank + 1)});
    ranks().allreduce("scaled minimum", least.view(), reduction::min, {2, 3}).wait();
    EXPECT_EQ(least.values()[0], 6);
}

TEST(nccl, shares_gathers_and_messages) {
    int const rank = ranks().rank(), size = ranks().size();
    auto const own = static_cast<std::size_t>(rank), world = static_cast<std::size_t>(size);
    for (std::size_t const count : {4 * world, 4 * world + 1}) {
        gpu_vector<float> const in(ramp(count, 0));
        auto const share = share_of(count, size, rank);
        gpu_vector<float> const out{std::vector<float>(share.count)};
        ranks().reducescatter("shares", in.view(), out.view(), reduction::average).wait();
        EXPECT_EQ(out.values(), ramp(share.count, static_cast<float>(share.first)));
    }
    std::vector<std::size_t> counts(world);
    std::iota(counts.begin(), counts.end(), 0);  // nothing from rank 0
    gpu_vector<std::int32_t> const some{std::vector<std::int32_t>(own, rank)};
    gpu_vector<std::int32_t> const all{std::vector<std::int32_t>(world * (world - 1) / 2)};
    ranks().allgather("uneven", some.view(), all.view(), counts).wait();
    std::vector<std::int32_t> wanted;
    for (std::size_t each = 0; each < world; ++each) wanted.insert(wanted.end(), each, static_cast<std::int32_t>(each));
    EXPECT_EQ(all.values(), wanted);

    std::vector<std::int32_t> sent;
    for (std::size_t to = 0; to < world; ++to) sent.insert(sent.end(), to, static_cast<std::int32_t>(100 * own + to));
    gpu_vector<std::int32_t> const send(sent), receive{std::vector<std::int32_t>(world * own)};
    std::vector<std::size_t> const receive_counts(world, own);
    ranks().alltoall("swap", send.view(), counts, receive.view(), receive_counts).wait();
    auto const got = receive.values();
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], static_cast<std::int32_t>(100 * (i / own) + own));

    gpu_vector<float> const news{std::vector<float>(1000, static_cast<float>(rank))};
    ranks().broadcast("news", news.view(), size - 1).wait();
    EXPECT_EQ(news.values(), std::vector<float>(1000, static_cast<float>(size - 1)));
    int const peer = size - 1 - rank;
    gpu_vector<float> const mine{std::vector<float>(own + 1, static_cast<float>(rank))};
    gpu_vector<float> const theirs{std::vector<float>(static_cast<std::size_t>(peer) + 1)};
    if (peer != rank) {
        ranks().sendrecv("pair", peer, mine.view(), theirs.view()).wait();
        EXPECT_EQ(theirs.values(), std::vector<float>(static_cast<std::size_t>(peer) + 1, static_cast<float>(peer)));
    }
    ranks().barrier().wait();
}

TEST(nccl, many_under_way_at_once) {
    std::vector<gpu_vector<float>> tensors;
    std::vector<operation> under_way;
    for (std::size_t i = 0; i < 161; ++i) tensors.emplace_back(std::vector<float>(1 + 97 * i, 1.0f));
    for (auto const& each : tensors) under_way.push_back(ranks().allreduce("many", each.view(), reduction::sum));
    for (auto& each : under_way) each.wait();
    for (auto const& each : tensors)
        for (float const value : each.values()) ASSERT_EQ(value, static_cast<float>(ranks().size()));
}

TEST(nccl, streams_of_the_program_wait_and_are_waited_for) {
    auto const stream = cuda::make_stream(*test::gpu());
    auto* const handle = stream.get().handle;
    cuda::driver const& with = test::gpu()->with();
    std::size_t const count = 1 << 22;
    gpu_vector<float> const source{std::vector<float>(count, 1.0f)}, tensor{std::vector<float>(count)},
        result{std::vector<float>(count)};
    auto const address = [](gpu_vector<float> const& of) { return std::bit_cast<cuda::device_address>(of.view().data); };
    ranks().use_stream(handle);
    {
        cuda::device::scope const current(*test::gpu());
        for (int i = 0; i < 20; ++i)  // enough work that a collective that did not wait would read too soon
            cuda::check(with, with.copy_device_to_device(address(tensor), address(source), 4 * count, handle),
                        "cuMemcpyDtoDAsync");
    }
    auto sum = ranks().allreduce("after the copies", tensor.view(), reduction::sum);
    sum.order(handle);
    {
        cuda::device::scope const current(*test::gpu());
        cuda::check(with, with.copy_device_to_device(address(result), address(tensor), 4 * count, handle), "cuMemcpyDtoDAsync");
    }
    EXPECT_EQ(result.values(handle), std::vector<float>(count, static_cast<float>(ranks().size())));
    sum.wait();
    ranks().use_stream(nullptr);
}

TEST(nccl, process_sets) {
    if (ranks().size() < 2) GTEST_SKIP() << "one rank has no others to leave out";
    std::array<int, 1> const last{ranks().size() - 1};
    auto part = ranks().include(last);
    EXPECT_EQ(static_cast<bool>(part), ranks().rank() == last[0]);
    if (part) {
        gpu_vector<float> const alone(std::vector<float>{5});
        part.allreduce("alone", alone.view(), reduction::sum).wait();
        EXPECT_EQ(alone.values()[0], 5);
    }
    ranks().barrier().wait();
}

/// Last, since every communicator of the process is aborted by it: a rank that does not come, a deadline, and a new communicator
/// afterwards.
/// All ranks have come here. NCCL has no part in it.
void meet(std::string const& where) {
    (void)gather_by_pmix(test::who(), "muster.test." + where, {}, duration{60});
}

/// A new communicator in the failed one's place works.
void go_on_anew() {
    test::make_anew();
    gpu_vector<float> const again(std::vector<float>{1});
    ranks().allreduce("again", again.view(), reduction::sum).wait();
    EXPECT_EQ(again.values()[0], static_cast<float>(ranks().size()));
}

TEST(nccl_zz, a_rank_that_does_not_come_fails_the_others_in_time_and_a_new_communicator_works) {
    if (ranks().size() < 2) GTEST_SKIP() << "one rank waits for nobody";
    gpu_vector<float> const tensor{std::vector<float>(1 << 20, 1.0f)};
    auto const begin = std::chrono::steady_clock::now();
    if (ranks().rank() == 0) {
        try {
            ranks().allreduce("nobody else", tensor.view(), reduction::sum).wait(duration{2});
            ADD_FAILURE() << "nothing was thrown";
        } catch (comm_error const& problem) {
            EXPECT_EQ(problem.code(), errc::timeout) << problem.what();
        }
        EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
        EXPECT_THROW((void)ranks().barrier(), comm_error);
    }
    meet("in_time");  // a rank that drops its communicator before has NCCL report that to rank 0
    go_on_anew();
}

TEST(nccl_zz, a_rank_that_drops_its_communicator_fails_the_others_and_a_new_communicator_works) {
    if (ranks().size() < 2) GTEST_SKIP() << "one rank waits for nobody";
    gpu_vector<float> const tensor{std::vector<float>(1 << 20, 1.0f)};
    if (ranks().rank() == 0) {
        try {
            ranks().allreduce("nobody stays", tensor.view(), reduction::sum).wait(duration{20});
            ADD_FAILURE() << "nothing was thrown";
        } catch (comm_error const& problem) {  // the fake NCCL lets a rank leave in silence
            EXPECT_THAT(problem.code(), AnyOf(errc::peer_failed, errc::timeout)) << problem.what();
        }
    }
    go_on_anew();
}

}  // namespace
}  // namespace muster
