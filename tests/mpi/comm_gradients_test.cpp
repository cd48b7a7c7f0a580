// Gradients in buckets: the averages, the overlap, the layouts, and what happens when ranks differ.
// ranks: 1 2 3 4
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "comm/backend/comm_error.hpp"
#include "comm/gradients/gradient_reducer.hpp"
#include "mpi_test.hpp"

namespace muster::test {

namespace {

using testing::HasSubstr;

/// A model whose gradients lie in memory as `place` says, the last layer's being ready first.
class model {
  public:
    enum class layout { forward, backward, scattered };

    explicit model(layout how) {
        std::size_t total = 0;
        for (auto const size : sizes) total += size + 1;
        memory_.resize(total);
        std::size_t at = how == layout::backward ? total : 0;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            if (how == layout::backward) at -= sizes[i];
            gradients.push_back({"layer" + std::to_string(sizes.size() - 1 - i), std::span(memory_).subspan(at, sizes[i])});
            if (how == layout::forward) at += sizes[i];
            if (how == layout::scattered) at += sizes[i] + 1;
        }
    }

    /// As a backward pass would: gradient i of this rank in this step.
    void compute(std::size_t i, int rank, int step) {
        for (std::size_t k = 0; k < gradients[i].values.size(); ++k) gradients[i].values[k] = value(i, k, rank, step);
    }
    static float value(std::size_t i, std::size_t k, int rank, int step) {
        return static_cast<float>((i + k % 97) * static_cast<std::size_t>(rank + 1) + static_cast<std::size_t>(step));
    }

    void expect_averages(int world, int step) const {
        for (std::size_t i = 0; i < gradients.size(); ++i)
            for (std::size_t k = 0; k < gradients[i].values.size(); ++k) {
                double sum = 0;
                for (int rank = 0; rank < world; ++rank) sum += value(i, k, rank, step);
                ASSERT_EQ(gradients[i].values[k], static_cast<float>(sum / world))
                    << "gradient " << i << " element " << k << " step " << step;
            }
    }

    std::vector<std::size_t> const sizes{10, 5120, 128, 0, 100352, 64, 18432, 32, 288};
    std::vector<gradient_view> gradients;

  private:
    std::vector<float> memory_;
};

constexpr gradient_reducer_options small_buckets{.bucket_bytes = 40000, .first_bucket_bytes = 40};

void run_steps(model& net, gradient_reducer& reducer, std::vector<std::size_t> const& order) {
    for (int step = 0; step < 3; ++step) {
        for (auto const i : order) {
            net.compute(i, ranks().rank(), step);
            reducer.ready(i);
        }
        reducer.finish();
        net.expect_averages(ranks().size(), step);
    }
}

std::vector<std::size_t> in_order(std::size_t count) {
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = i;
    return order;
}

TEST(gradients, are_averaged_in_every_layout) {
    for (auto const how : {model::layout::forward, model::layout::backward, model::layout::scattered}) {
        model net(how);
        gradient_reducer reducer(ranks(), net.gradients, small_buckets);
        ASSERT_GT(reducer.bucket_count(), 2u);
        bool copies = false;
        for (std::size_t b = 0; b < reducer.bucket_count(); ++b) copies = copies || !reducer.in_place(b);
        EXPECT_EQ(copies, how == model::layout::scattered);
        run_steps(net, reducer, in_order(net.gradients.size()));
    }
}

TEST(gradients, may_be_ready_in_any_order_and_another_on_each_rank) {
    model net(model::layout::forward);
    gradient_reducer reducer(ranks(), net.gradients, small_buckets);
    auto order = in_order(net.gradients.size());
    std::rotate(order.begin(), order.begin() + ranks().rank() + 1, order.end());
    run_steps(net, reducer, order);
}

/// Where ranks lay their gradients differently, elements that meet in place would be those of different gradients.
TEST(gradients, lie_differently_on_one_rank) {
    model net(ranks().rank() == 0 ? model::layout::backward : model::layout::forward);
    gradient_reducer reducer(ranks(), net.gradients, small_buckets);
    run_steps(net, reducer, in_order(net.gradients.size()));
    if (ranks().size() == 1) return;
    for (std::size_t b = 0; b < reducer.bucket_count(); ++b) EXPECT_FALSE(reducer.in_place(b)) << b;
}

/// No clock: the first bucket is under way, and done, while the backward pass still has gradients to compute.
TEST(gradients, are_reduced_while_the_backward_pass_goes_on) {
    model net(model::layout::forward);
    gradient_reducer reducer(ranks(), net.gradients, small_buckets);
    for (int step = 0; step < 3; ++step) {
        EXPECT_EQ(reducer.started_buckets(), 0u);
        for (std::size_t i = 0; i + 1 < net.gradients.size(); ++i) {
            net.compute(i, ranks().rank(), step);
            reducer.ready(i);
        }
        EXPECT_EQ(reducer.started_buckets(), reducer.bucket_count() - 1);
        while (reducer.finished_buckets() < reducer.bucket_count() - 1) {
        }
        EXPECT_FLOAT_EQ(net.gradients[0].values[3], [&] {
            double sum = 0;
            for (int rank = 0; rank < ranks().size(); ++rank) sum += model::value(0, 3, rank, step);
            return static_cast<float>(sum / ranks().size());
        }());
        net.compute(net.gradients.size() - 1, ranks().rank(), step);
        reducer.ready(net.gradients.size() - 1);
        reducer.finish();
        net.expect_averages(ranks().size(), step);
    }
}

TEST(gradients, other_collectives_may_go_on_meanwhile) {
    model net(model::layout::scattered);
    gradient_reducer reducer(ranks(), net.gradients, small_buckets);
    for (std::size_t i = 0; i < net.gradients.size(); ++i) {
        net.compute(i, ranks().rank(), 0);
        reducer.ready(i);
        float loss = 1.0f;
        ranks().allreduce("loss", view_of(std::span(&loss, 1)), reduction::average).wait();
        EXPECT_EQ(loss, 1.0f);
    }
    reducer.finish();
    net.expect_averages(ranks().size(), 0);
}

TEST(gradients, one_bucket_and_none) {
    model net(model::layout::forward);
    gradient_reducer whole(ranks(), net.gradients, {.bucket_bytes = 1u << 30, .first_bucket_bytes = 1u << 30});
    EXPECT_EQ(whole.bucket_count(), 1u);
    run_steps(net, whole, in_order(net.gradients.size()));
    gradient_reducer none(ranks(), {});
    none.finish();
}

/// `alter` makes the last rank's list another one.
template <typename Alter>
std::string refusal(Alter&& alter, gradient_reducer_options options = small_buckets) {
    model net(model::layout::forward);
    bool const is_last = ranks().rank() == ranks().size() - 1;
    if (is_last) alter(net.gradients, options);
    try {
        gradient_reducer reducer(ranks(), net.gradients, options);
    } catch (comm_error const& problem) {
        EXPECT_EQ(problem.code(), errc::peer_failed);
        return problem.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
}

TEST(gradients, that_differ_are_refused_on_all_ranks_with_rank_and_gradient_named) {
    if (ranks().size() == 1) GTEST_SKIP() << "nobody to differ from";
    int const last = ranks().size() - 1;
    std::string const culprit = "failed on 1 of " + std::to_string(ranks().size()) + " ranks:\n  rank " + std::to_string(last) +
                                " (" + ranks().host_of(last) + "): ";
    auto const name = refusal([](auto& list, auto&) { list[2].name = "layer6.bias"; });
    EXPECT_THAT(name,
                HasSubstr(culprit + "gradient 2 is \"layer6.bias\" with 128 elements here and \"layer6\" with 128 on rank 0"));
    auto const size = refusal([](auto& list, auto&) { list[1].values = list[1].values.first(5000); });
    EXPECT_THAT(size, HasSubstr(culprit + "gradient 1 is \"layer7\" with 5000 elements here and \"layer7\" with 5120 on rank 0"));
    auto const number = refusal([](auto& list, auto&) { list.pop_back(); });
    EXPECT_THAT(
        number,
        HasSubstr(culprit + "there are 8 gradients here and 9 on rank 0; the first one missing is \"layer0\" with 288 elements"));
    auto const options = refusal([](auto&, auto& given) { given.bucket_bytes = 1; });
    EXPECT_THAT(options, HasSubstr("(bucket_bytes)"));
}

}  // namespace

}  // namespace muster::test
