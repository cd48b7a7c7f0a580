// Prepared groups, compression on the wire, and what is told of tensors that do not come.
// ranks: 1 2 4
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <functional>
#include <sstream>
#include <vector>

#include "comm/backend/comm_error.hpp"
#include "comm/exchange/exchange.hpp"
#include "mpi_test.hpp"
#include "quick_exchange.hpp"

namespace muster::test {

namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

struct exchange_group : testing::Test {
    exchange all{ranks().who(), quick()};
    int const rank = all.rank(), size = all.size();
};
struct exchange_wire : exchange_group {};

comm_error error_of(std::function<void()> const& body) {
    try {
        body();
    } catch (comm_error const& problem) {
        return problem;
    }
    ADD_FAILURE() << "nothing was thrown";
    return comm_error(errc::internal, "");
}

/// Tensors of 1, 2, 3, … elements, apart from each other or gap-free.
struct tensors {
    std::vector<float> memory;
    std::vector<std::span<float>> all;
    std::vector<std::string> names;

    tensors(std::size_t count, std::size_t gap) : memory(count * (count + 1) / 2 + count * gap) {
        for (std::size_t i = 0, at = 0; i < count; ++i) {
            all.push_back(std::span(memory).subspan(at, i + 1));
            names.push_back("t" + std::to_string(i));
            at += i + 1 + gap;
        }
    }
    std::vector<named_tensor> group() const {
        std::vector<named_tensor> made;
        for (std::size_t i = 0; i < all.size(); ++i) made.push_back({names[i], view_of(all[i]), view_of(all[i])});
        return made;
    }
    void fill(float value) { std::fill(memory.begin(), memory.end(), value); }
};

TEST_F(exchange_group, what_is_prepared_is_reduced_at_every_start) {
    for (std::size_t const gap : {0u, 1u}) {
        tensors set(40, gap);
        auto group = all.prepare("prepared " + std::to_string(gap), set.group(), reduction::sum, {.scale = {2, 1}});
        EXPECT_EQ(group.tensors(), 40u);
        auto const before = all.count();
        for (int step = 0; step < 5; ++step) {
            set.fill(-1.0f);
            for (std::size_t i = 0; i < set.all.size(); ++i)
                std::fill(set.all[i].begin(), set.all[i].end(), static_cast<float>(static_cast<int>(i) + rank + step));
            group.start().wait();
            for (std::size_t i = 0; i < set.all.size(); ++i) {
                int const expected = 2 * (size * (static_cast<int>(i) + step) + size * (size - 1) / 2);
                ASSERT_THAT(set.all[i], Each(static_cast<float>(expected))) << step;
            }
            if (gap == 1) {
                ASSERT_EQ(set.memory[1], -1.0f);  // what lies between is left alone
            }
        }
        auto const after = all.count();
        EXPECT_EQ(after.full_rounds, before.full_rounds);  // agreed on once and for all
        EXPECT_EQ(after.cache_hits - before.cache_hits, 5u);
        EXPECT_EQ(after.tensors - before.tensors, 200u);
        EXPECT_EQ(after.batches - before.batches, 5u);
        EXPECT_EQ(after.zero_copy_batches - before.zero_copy_batches, gap == 0 ? 5u : 0u);
        auto const records = all.dump().records;
        EXPECT_EQ(records.back().name, group.name());
        EXPECT_EQ(records.back().bytes, group.bytes());
    }
}

TEST_F(exchange_group, a_group_of_the_same_name_may_lie_elsewhere_the_next_time) {
    tensors first(5, 1), second(5, 1);
    for (int step = 0; step < 3; ++step) {
        for (auto* const set : {&first, &second}) {
            set->fill(1.0f);
            all.allreduce_group("same", set->group(), reduction::sum).wait();
            EXPECT_THAT(set->all[4], Each(static_cast<float>(size))) << step;
        }
    }
}

TEST_F(exchange_group, a_prepared_group_holds_types_of_all_kinds_and_memory_of_the_exchange) {
    auto const memory = all.allocate(1000 * sizeof(float));
    auto const shared = memory.as<float>();
    std::vector<double> in(3), out(3);
    std::vector<std::int32_t> integers(2);
    std::vector<float> none;
    named_tensor const mixed[]{{"shared", view_of(shared), view_of(shared)},
                               {"apart", view_of(std::span(in)), view_of(std::span(out))},
                               {"none", view_of(std::span(none)), view_of(std::span(none))},
                               {"integers", view_of(std::span(integers)), view_of(std::span(integers))}};
    auto group = all.prepare("mixed", mixed, reduction::max);
    auto moved = std::move(group);
    EXPECT_EQ(error_of([&] { group.start(); }).code(), errc::usage);
    for (int step = 0; step < 3; ++step) {
        std::fill(shared.begin(), shared.end(), static_cast<float>(rank));
        std::fill(in.begin(), in.end(), rank + 0.5);
        std::fill(integers.begin(), integers.end(), -rank);
        moved.start().wait();
        EXPECT_EQ(shared[999], static_cast<float>(size - 1));
        EXPECT_THAT(out, Each(size - 0.5));
        EXPECT_THAT(integers, Each(0));
    }
}

TEST_F(exchange_group, ranks_that_prepare_different_things_are_all_told_so) {
    if (size == 1) GTEST_SKIP() << "nobody to differ from";
    std::vector<float> a(3), b(rank == 1 ? 5 : 4);
    named_tensor const group[]{{"a", view_of(std::span(a)), view_of(std::span(a))},
                               {"b", view_of(std::span(b)), view_of(std::span(b))}};
    auto const problem = error_of([&] { all.prepare("ab", group, reduction::sum); });
    EXPECT_EQ(problem.code(), errc::peer_failed);
    EXPECT_THAT(problem.what(), HasSubstr("prepare of \"ab\": shape [4] of \"b\" on rank"));
    EXPECT_THAT(problem.what(), HasSubstr("but shape [5] on rank 1 ("));
    EXPECT_THAT(problem.culprits(), ElementsAre(1));
    // A group that one rank has prepared and another has not: the same reduction all the same.
    std::vector<float> c(4, 1.0f);
    named_tensor const plain[]{{"c", view_of(std::span(c)), view_of(std::span(c))}};
    auto ready = all.prepare("c", plain, reduction::sum);
    (rank == 0 ? ready.start() : all.allreduce_group("c", plain, reduction::sum)).wait();
    EXPECT_THAT(c, Each(static_cast<float>(size)));
}

TEST_F(exchange_group, a_prepared_group_in_flight_is_not_started_again) {
    tensors set(4, 0);
    auto group = all.prepare("once", set.group(), reduction::sum);
    set.fill(1.0f);
    if (rank == 0 && size > 1) {
        auto const first = group.start();
        EXPECT_THAT(error_of([&] { group.start(); }).what(), HasSubstr("in flight"));
        all.barrier().wait();
        first.wait();
    } else {
        all.barrier().wait();
        group.start().wait();
    }
    EXPECT_THAT(set.memory, Each(static_cast<float>(size)));
}

TEST_F(exchange_group, prepared_in_a_process_set_and_when_ranks_have_joined) {
    std::vector<int> even;
    for (int r = 0; r < size; r += 2) even.push_back(r);
    int const evens = all.add_process_set(even);
    tensors some(3, 1), set(3, 1);
    if (rank % 2 == 0) {
        auto group = all.prepare("same name", some.group(), reduction::sum, {.set = evens});
        for (int step = 0; step < 2; ++step) {
            some.fill(1.0f);
            group.start().wait();
            EXPECT_THAT(some.all[2], Each(static_cast<float>(even.size())));
        }
    }
    auto group = all.prepare("same name", set.group(), reduction::sum);
    for (int step = 0; step <= rank; ++step) {  // rank 0 joins first
        set.fill(1.0f);
        group.start().wait();
        EXPECT_THAT(set.all[2], Each(static_cast<float>(size - step)));
    }
    all.join().wait();
    set.fill(1.0f);
    group.start().wait();
    EXPECT_THAT(set.all[1], Each(static_cast<float>(size)));
}

/// 1 and three quarters of what bf16 can tell apart there: every rounding goes up.
constexpr float between = 1.0f + 0.75f / 128;
constexpr float above = 1.0f + 1.0f / 128;

TEST_F(exchange_wire, compressed_sums_are_two_roundings_from_the_truth_and_the_same_on_all_ranks) {
    tensors set(60, 1);
    auto const n = static_cast<double>(size);
    for (auto const wire : {compression::f16, compression::bf16}) {
        double const rounding = wire == compression::f16 ? std::ldexp(1.0, -11) : std::ldexp(1.0, -8);
        std::vector<exchange_handle> handles;
        for (std::size_t i = 0; i < set.all.size(); ++i)
            for (std::size_t k = 0; k < set.all[i].size(); ++k)
                set.all[i][k] = 0.5f + 0.01f * static_cast<float>(k) + 0.1f * static_cast<float>(rank);
        for (std::size_t i = 0; i < set.all.size(); ++i) {
            auto const view = view_of(set.all[i]);
            handles.push_back(all.allreduce(set.names[i], view, view, reduction::average, {.scale = {3, 0.5}, .wire = wire}));
        }
        for (auto const& each : handles) each.wait();
        for (auto const& each : set.all) {
            for (std::size_t k = 0; k < each.size(); ++k) {
                double const exact = 1.5 * (0.5 + 0.01 * static_cast<double>(k) + 0.1 * (n - 1) / 2);
                ASSERT_NEAR(each[k], exact, size == 1 ? 1e-6 * exact : 2.1 * rounding * exact) << to_string(wire) << k;
            }
        }
        auto of_rank_0 = set.memory;
        all.broadcast("rank 0's", view_of(std::span(of_rank_0)), view_of(std::span(of_rank_0)), 0).wait();
        for (std::size_t i = 0, at = 0; i < set.all.size(); at += set.all[i++].size() + 1)
            for (std::size_t k = 0; k < set.all[i].size(); ++k) ASSERT_EQ(set.all[i][k], of_rank_0[at + k]);
    }
    std::vector<float> exactly(1, between);
    auto const view = view_of(std::span(exactly));
    all.allreduce("rounded", view, view, reduction::average, {.wire = compression::bf16}).wait();
    EXPECT_EQ(exactly[0], size == 1 ? between : above);
}

TEST(exchange_wire_option, compresses_what_can_be_and_leaves_the_rest_alone) {
    auto options = quick();
    options.wire = compression::bf16;
    exchange all(ranks().who(), options);
    float const rounded = all.size() == 1 ? between : above;
    std::vector<float> a(5, between), b(70000, between), c(3, between), d(3, between);
    std::vector<double> wide(2, static_cast<double>(between));
    std::vector<std::int32_t> integers(2, 100001);
    named_tensor const group[]{{"a", view_of(std::span(a)), view_of(std::span(a))},
                               {"b", view_of(std::span(b)), view_of(std::span(b))},
                               {"integers", view_of(std::span(integers)), view_of(std::span(integers))},
                               {"wide", view_of(std::span(wide)), view_of(std::span(wide))}};
    auto prepared = all.prepare("group", group, reduction::sum);
    prepared.start().wait();
    auto const n = static_cast<float>(all.size());
    EXPECT_THAT(a, Each(n * rounded));
    EXPECT_THAT(b, Each(n * rounded));
    EXPECT_THAT(integers, Each(100001 * all.size()));
    EXPECT_THAT(wide, Each(static_cast<double>(between) * n));
    all.allreduce("c", view_of(std::span(c)), view_of(std::span(c)), reduction::max).wait();
    EXPECT_THAT(c, Each(between));
    all.allreduce("d", view_of(std::span(d)), view_of(std::span(d)), reduction::average, {.wire = compression::none}).wait();
    EXPECT_THAT(d, Each(between));
}

TEST_F(exchange_wire, with_error_feedback_the_mean_of_many_steps_is_right) {
    constexpr int steps = 64;
    float const exact = 1.0f + 0.25f / 128;  // rounds down every time without
    auto const mean = [&](std::string const& name, bool error_feedback) {
        double sum = 0;
        for (int step = 0; step < steps; ++step) {
            std::vector<float> a(2, exact), b(300, exact);
            named_tensor const group[]{{"a", view_of(std::span(a)), view_of(std::span(a))},
                                       {"b", view_of(std::span(b)), view_of(std::span(b))}};
            all.allreduce_group(name, group, reduction::average, {.wire = compression::bf16, .error_feedback = error_feedback})
                .wait();
            EXPECT_EQ(a[1], b[299]);
            sum += static_cast<double>(a[1]);
        }
        return sum / steps;
    };
    if (size > 1) {
        EXPECT_EQ(mean("without", false), 1.0);
    }
    EXPECT_NEAR(mean("with", true), static_cast<double>(exact), 1.0 / 128 / steps);
    // The residual of a tensor that has another size now is not that of this one.
    auto const first_of = [&](std::size_t count) {
        std::vector<float> values(count, 1.0f + 0.375f / 128);
        auto const view = view_of(std::span(values));
        all.allreduce("sized", view, view, reduction::average, {.wire = compression::bf16, .error_feedback = true}).wait();
        return values.back();
    };
    if (size > 1) {
        EXPECT_THAT((std::vector{first_of(4), first_of(4), first_of(8), first_of(8)}), ElementsAre(1.0f, above, 1.0f, above));
    }
}

TEST_F(exchange_wire, what_cannot_be_compressed_or_differs_is_refused) {
    std::vector<std::int32_t> integers(2);
    std::vector<float> floats(2, 1.0f);
    auto const i = view_of(std::span(integers)), f = view_of(std::span(floats));
    auto const refused = [&](std::function<void()> const& body) {
        auto const problem = error_of(body);
        EXPECT_EQ(problem.code(), errc::usage);
        return std::string(problem.what());
    };
    EXPECT_THAT(refused([&] { all.allreduce("i", i, i, reduction::sum, {.wire = compression::bf16}); }),
                HasSubstr("compression bf16 is for sums and averages of f32"));
    EXPECT_THAT(refused([&] { all.allreduce("f", f, f, reduction::max, {.wire = compression::f16}); }), HasSubstr("not for max"));
    if (size == 1) return;
    auto const problem = error_of(
        [&] { all.allreduce("f", f, f, reduction::sum, {.wire = rank == 1 ? compression::bf16 : compression::f16}).wait(); });
    EXPECT_EQ(problem.code(), errc::peer_failed);
    EXPECT_THAT(problem.what(), HasSubstr("allreduce of \"f\": compression f16 on rank"));
    EXPECT_THAT(problem.what(), HasSubstr("but compression bf16 on rank 1 ("));
}

/// What is logged while it lives.
class captured_log {
  public:
    captured_log() : before_(spdlog::default_logger()) {
        auto const to = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
        spdlog::set_default_logger(std::make_shared<spdlog::logger>("", to));
    }
    ~captured_log() { spdlog::set_default_logger(before_); }
    std::string text() const { return text_.str(); }

  private:
    std::shared_ptr<spdlog::logger> before_;
    std::ostringstream text_;
};

TEST(exchange_stall, the_warning_names_the_tensor_and_who_is_missing) {
    if (ranks().size() == 1) GTEST_SKIP() << "nobody to wait for";
    captured_log log;
    auto options = quick();
    options.stall_warning = duration{0.05};
    options.device_name = "GPU " + std::to_string(ranks().rank());
    int const last = ranks().size() - 1;
    {
        exchange all(ranks().who(), options);
        std::vector<float> first(4, 1.0f), late(4, 1.0f);
        auto const view = view_of(std::span(first)), late_view = view_of(std::span(late));
        // Once in time, so that the second time it is in the cache.
        all.allreduce("late", late_view, late_view, reduction::sum).wait();
        std::fill(late.begin(), late.end(), 1.0f);
        if (all.rank() == last) {
            all.barrier().wait();
            all.allreduce("first", view, view, reduction::sum).wait();
            all.allreduce("late", late_view, late_view, reduction::sum).wait();
        } else {
            auto const before = all.count().stalls;  // on a busy machine the first time may have taken long too
            auto const one = all.allreduce("first", view, view, reduction::sum);
            auto const other = all.allreduce("late", late_view, late_view, reduction::sum);
            while (all.count().stalls < before + 2 && !one.wait_for(duration{0.01})) {
            }
            all.barrier().wait();
            one.wait();
            other.wait();
            EXPECT_GE(all.count().stalls, before + 2);
        }
        EXPECT_EQ(late[0], static_cast<float>(all.size()));
    }
    if (ranks().rank() == 0) {
        std::string const who =
            "rank " + std::to_string(last) + " (" + ranks().host_of(last) + ", GPU " + std::to_string(last) + ")";
        for (std::string const name : {"first", "late"})
            EXPECT_THAT(log.text(), HasSubstr("allreduce of \"" + name + "\": submitted"));
        EXPECT_THAT(log.text(), HasSubstr("still missing on " + who));
    } else {
        EXPECT_THAT(log.text(), testing::Not(HasSubstr("allreduce")));  // one tells it for all
    }
}

/// In the first step or, `cached`, in a later one.
void expect_error_on_every_rank(bool cached) {
    captured_log log;
    auto options = quick();
    options.deadline = duration{20.0};
    int const last = ranks().size() - 1;
    exchange all(ranks().who(), options);
    std::vector<float> values(4, 1.0f);
    auto const view = view_of(std::span(values));
    if (cached) all.allreduce("forgotten", view, view, reduction::sum).wait();
    auto const problem = error_of([&] {
        if (all.rank() == last)
            all.barrier().wait();
        else
            all.allreduce("forgotten", view, view, reduction::sum).wait(duration{0.3});
    });
    EXPECT_EQ(problem.code(), errc::timeout);
    EXPECT_THAT(problem.what(), HasSubstr("allreduce of \"forgotten\" (rank ")) << all.rank();
    EXPECT_THAT(problem.what(), HasSubstr("waiting for rank " + std::to_string(last) + " (" + ranks().host_of(last)));
    EXPECT_THAT(problem.culprits(), ElementsAre(last)) << all.rank();
}

TEST(exchange_stall, a_tensor_that_never_comes_is_an_error_on_every_rank) {
    if (ranks().size() == 1) GTEST_SKIP() << "nobody to wait for";
    if (ranks().backend() == "mpi") GTEST_SKIP() << "MPI is left unfinalised then, which the launcher takes for a failure";
    expect_error_on_every_rank(false);
    expect_error_on_every_rank(true);
}

}  // namespace

}  // namespace muster::test
