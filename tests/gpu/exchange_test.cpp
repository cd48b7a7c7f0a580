// Tensors in device memory through the exchange, with as many ranks as were started (`muster run`).
#include "comm/exchange/exchange.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>

#include "comm/backend/comm_error.hpp"
#include "comm/cuda/fusion_kernels.hpp"
#include "comm/gradients/adasum.hpp"
#include "nccl_test.hpp"

namespace muster {
namespace {

using test::gpu_vector;
using testing::Each;
using testing::HasSubstr;

exchange_options quick() {
    exchange_options options;
    options.comm.device = test::gpu()->ordinal();
    options.deadline = duration{60};
    options.cycle_time = duration{0.0002};
    return options;
}

/// The elements of a tensor in memory that holds more.
tensor_view part(gpu_vector<float> const& of, std::size_t first, std::size_t count) {
    return part_of(of.view(), {first, count});
}

std::vector<float> filled(std::size_t count, int with) {
    return std::vector<float>(count, static_cast<float>(with));
}

int sum_to(int ranks) {
    return ranks * (ranks + 1) / 2;
}

TEST(exchange_on_device, many_tensors_in_another_order_on_each_rank) {
    exchange all(test::who(), quick());
    int const rank = all.rank(), size = all.size();
    std::vector<gpu_vector<float>> in, out;
    for (std::size_t i = 0; i < 161; ++i) {
        in.emplace_back(filled(1 + 37 * i, (rank + 1) * static_cast<int>(i % 7 + 1)));
        out.emplace_back(filled(1 + 37 * i, -1));
    }
    for (int step = 0; step < 3; ++step) {
        std::vector<exchange_handle> under_way(in.size());
        for (std::size_t k = 0; k < in.size(); ++k) {
            std::size_t const i = (k * 30 + static_cast<std::size_t>(rank)) % in.size();
            under_way[i] = all.allreduce("grad." + std::to_string(i), in[i].view(), out[i].view(), reduction::sum);
        }
        for (auto const& each : under_way) each.wait();
    }
    for (std::size_t i = 0; i < out.size(); ++i)
        EXPECT_THAT(out[i].values(), Each(static_cast<float>(sum_to(size) * static_cast<int>(i % 7 + 1)))) << i;
    EXPECT_GT(all.count().fused_tensors, 100u);
}

TEST(exchange_on_device, every_type_and_reduction) {
    exchange all(test::who(), quick());
    int const rank = all.rank(), size = all.size();
    auto const reduced = [&]<typename T>(std::string const& name, std::vector<T> const& values, reduction how,
                                         scaling scale = {}) {
        gpu_vector<T> const tensor(values);
        exchange_call call;
        call.scale = scale;
        all.allreduce(name, tensor.view(), tensor.view(), how, call).wait();
        return tensor.values();
    };
    using how = reduction;
    EXPECT_EQ(reduced("i64", std::vector<std::int64_t>{rank, -rank}, how::max), (std::vector<std::int64_t>{size - 1, 0}));
    EXPECT_EQ(reduced("i32", std::vector<std::int32_t>{rank + 1}, how::sum), std::vector<std::int32_t>{sum_to(size)});
    EXPECT_EQ(reduced("i8", std::vector<std::int8_t>{static_cast<std::int8_t>(-rank)}, how::min),
              std::vector<std::int8_t>{static_cast<std::int8_t>(1 - size)});
    EXPECT_EQ(reduced("u8", std::vector<std::uint8_t>{2}, how::product),
              std::vector<std::uint8_t>{static_cast<std::uint8_t>(1 << size)});
    EXPECT_EQ(reduced("f64", std::vector<double>{rank + 1.0}, how::average), std::vector<double>{(size + 1) / 2.0});
    EXPECT_EQ(reduced("f32", std::vector<float>{1}, how::sum, {0.5, 4}), std::vector<float>{2.0f * static_cast<float>(size)});
    EXPECT_EQ(static_cast<float>(reduced("f16", std::vector<half>{half(2)}, how::product)[0]),
              std::exp2(static_cast<float>(size)));
    EXPECT_NEAR(static_cast<float>(reduced("bf16", std::vector<bfloat16>{bfloat16(300)}, how::average)[0]), 300, 2);
}

TEST(exchange_on_device, what_lies_gap_free_is_not_copied_wherever_it_does_on_other_ranks) {
    exchange all(test::who(), quick());
    std::size_t const count = 1024;
    gpu_vector<float> const whole(filled(3 * count, all.rank() + 1));
    gpu_vector<float> const apart(filled(5 * count, all.rank() + 1));
    bool const scattered = all.rank() != 0 && all.rank() == all.size() - 1;
    std::vector<named_tensor> tensors;
    std::array<std::string, 3> const names{"a", "b", "c"};
    for (std::size_t i = 0; i < 3; ++i) {
        tensor_view const view = scattered ? part(apart, 2 * i * count, count) : part(whole, i * count, count);
        tensors.push_back({names[i], view, view});
    }
    all.allreduce_group("group", tensors, reduction::sum).wait();
    auto const wanted = static_cast<float>(sum_to(all.size()));
    EXPECT_EQ(all.count().zero_copy_batches, scattered ? 0u : 1u);
    if (!scattered) {
        EXPECT_THAT(whole.values(), Each(wanted));
        return;
    }
    auto const values = apart.values();
    for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(values[i], i / count % 2 == 0 ? wanted : static_cast<float>(all.rank() + 1)) << i;
}

/// Tensors of sizes that do not fill 16 bytes travel with gaps between them, also from where they lie without.
TEST(exchange_on_device, small_tensors_that_lie_gap_free_on_some_ranks_only) {
    exchange all(test::who(), quick());
    std::size_t const count = 5;
    gpu_vector<float> const memory(filled(6 * count, all.rank() + 1));
    std::size_t const step = all.rank() == 0 ? count : 8;  // else with the very gaps that they travel with, which are others'
    std::vector<named_tensor> tensors;
    std::array<std::string, 3> const names{"a", "b", "c"};
    for (std::size_t i = 0; i < 3; ++i)
        tensors.push_back({names[i], part(memory, i * step, count), part(memory, i * step, count)});
    all.allreduce_group("group", tensors, reduction::average).wait();
    auto const values = memory.values();
    for (std::size_t i = 0; i < values.size(); ++i) {
        bool const is_reduced = i / step < 3 && i % step < count;
        ASSERT_EQ(values[i], is_reduced ? static_cast<float>(all.size() + 1) / 2 : static_cast<float>(all.rank() + 1)) << i;
    }
}

/// Over the FAKE driver the default stream stands still for as long as this lives, and what waits for it; a real one has enough
/// to do to be late.
class late_default_stream {
  public:
    late_default_stream() {
        void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
        if (library != nullptr) set_ = reinterpret_cast<void (*)(char const*, int)>(::dlsym(library, "fake_set"));
        if (set_ != nullptr) set_("freeze_default", 1);
    }
    ~late_default_stream() {
        if (set_ != nullptr) set_("freeze_default", 0);
    }
    bool stands_still() const noexcept { return set_ != nullptr; }
    late_default_stream(late_default_stream const&) = delete;
    late_default_stream& operator=(late_default_stream const&) = delete;

  private:
    void (*set_)(char const*, int) = nullptr;
};

TEST(exchange_on_device, streams_wait_for_each_other_and_the_host_for_nothing) {
    exchange all(test::who(), quick());
    auto const stream = cuda::make_stream(*test::gpu());
    auto* const handle = stream.get().handle;
    cuda::driver const& with = test::gpu()->with();
    std::size_t const count = 1 << 18;
    gpu_vector<float> const source(filled(count, all.rank() + 1)), a(filled(count, 0)), b(filled(count, 0)),
        result(filled(2 * count, 0));
    auto const address = [](tensor_view const& of) { return std::bit_cast<cuda::device_address>(of.data); };
    exchange_call call;
    call.stream = handle;
    auto const before = cuda::make_event(*test::gpu());
    for (int step = 0; step < 3; ++step) {
        std::array<exchange_handle, 2> under_way;
        std::optional<late_default_stream> late(std::in_place);
        {
            cuda::device::scope const current(*test::gpu());
            cuda::check(with, with.event_record(before.get().handle, nullptr), "cuEventRecord");
            cuda::check(with, with.stream_wait_event(handle, before.get().handle, 0), "cuStreamWaitEvent");
            for (auto const* each : {&a, &b})
                for (int i = 0; i < 20; ++i)  // enough work that a collective that did not wait would read too soon
                    cuda::check(with,
                                with.copy_device_to_device(address(each->view()), address(source.view()), 4 * count, handle),
                                "cuMemcpyDtoDAsync");
        }
        under_way[0] = all.allreduce("a", a.view(), a.view(), reduction::sum, call);
        under_way[1] = all.allreduce("b", b.view(), b.view(), reduction::average, call);
        for (auto const& each : under_way) each.order(handle);
        {
            cuda::device::scope const current(*test::gpu());
            cuda::check(with, with.copy_device_to_device(address(result.view()), address(a.view()), 4 * count, handle),
                        "cuMemcpyDtoDAsync");
            cuda::check(with,
                        with.copy_device_to_device(address(part(result, count, count)), address(b.view()), 4 * count, handle),
                        "cuMemcpyDtoDAsync");
        }
        if (late->stands_still()) {
            EXPECT_FALSE(under_way[0].poll());
        }
        late.reset();
        auto const values = result.values(handle);
        auto wanted = filled(count, sum_to(all.size()));
        wanted.resize(2 * count, static_cast<float>(all.size() + 1) / 2);
        EXPECT_TRUE(values == wanted);  // not printed: there are too many
        for (auto const& each : under_way) each.wait();
    }
    gpu_vector<float> const other(filled(4, 1));
    std::vector<float> on_host{1};
    auto const host = all.allreduce("host", view_of(std::span(on_host)), view_of(std::span(on_host)), reduction::sum);
    EXPECT_THROW(host.order(handle), comm_error);
    host.wait();
}

TEST(exchange_on_device, compression_rounds_once_on_each_rank) {
    if (auto const why = cuda::kernels_missing()) GTEST_SKIP() << *why;
    exchange all(test::who(), quick());
    std::vector<float> values(1000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0f + static_cast<float>(i) / 1000;
    gpu_vector<float> const in(values), out(filled(1000, 0)), more(filled(5, 3));
    for (compression const wire : {compression::f16, compression::bf16}) {
        exchange_call call;
        call.wire = wire;
        call.scale = {0.5, 4};
        auto const first = all.allreduce("first", in.view(), out.view(), reduction::sum, call);
        auto const second = all.allreduce("second", more.view(), more.view(), reduction::average, call);
        first.wait();
        second.wait();
        double const unit = wire == compression::f16 ? 0x1p-10 : 0x1p-7;
        auto const got = out.values();
        bool rounded = false;
        for (std::size_t i = 0; i < got.size(); ++i) {
            double const exact = 2.0 * all.size() * static_cast<double>(values[i]);
            EXPECT_NEAR(got[i], exact, exact * unit * all.size()) << i;
            rounded = rounded || std::abs(got[i] - exact) > exact * 0x1p-20;
        }
        EXPECT_EQ(rounded, all.size() > 1);
    }
    EXPECT_THAT(more.values(), Each(12.0f));
}

/// What bf16 cannot hold of 1 + 2^-9 adds up to one of its units in four steps.
TEST(exchange_on_device, error_feedback_hands_out_later_what_rounding_has_lost) {
    if (auto const why = cuda::kernels_missing()) GTEST_SKIP() << *why;
    exchange all(test::who(), quick());
    auto const ranks = static_cast<float>(all.size());
    gpu_vector<float> const in(std::vector<float>(33, 1 + 0x1p-9f)), out(filled(33, 0)),
        other(std::vector<float>(5, 1 + 0x1p-9f)), other_out(filled(5, 0));
    std::vector<named_tensor> const tensors{{"in", in.view(), out.view()}, {"other", other.view(), other_out.view()}};
    for (bool const feeds_back : {false, true}) {
        exchange_call call;
        call.wire = compression::bf16;
        call.error_feedback = feeds_back;
        std::vector<float> sums(38);
        for (int step = 0; step < 4; ++step) {
            all.allreduce_group("group", tensors, reduction::sum, call).wait();
            auto got = out.values();
            auto const rest = other_out.values();
            got.insert(got.end(), rest.begin(), rest.end());
            for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += got[i];
        }
        bool const is_exact = feeds_back || all.size() == 1;
        EXPECT_THAT(sums, Each(is_exact ? ranks * (4 + 0x1p-7f) : ranks * 4)) << feeds_back;
    }
    EXPECT_THAT(in.values(), Each(1 + 0x1p-9f));
}

TEST(exchange_on_device, rows_and_roots) {
    exchange all(test::who(), quick());
    int const rank = all.rank(), size = all.size();
    auto const own = static_cast<std::size_t>(rank), world = static_cast<std::size_t>(size);
    gpu_vector<float> const mine(filled(2 * own, rank)), news(filled(100, rank)), heard(filled(100, -1));
    exchange_call of_two;
    of_two.shape = make_shape(std::array<std::int64_t, 2>{rank, 2});
    auto const gathered = all.allgather("rows", mine.view(), {}, of_two);
    gathered.wait();
    ASSERT_EQ(gathered.result().count, 2 * world * (world - 1) / 2);
    EXPECT_EQ(gathered.result().where, memory_kind::device);
    auto const everything = test::download<float>(gathered.result());
    std::size_t at = 0;
    for (std::size_t from = 0; from < world; ++from)
        for (std::size_t i = 0; i < 2 * from; ++i) EXPECT_EQ(everything[at++], static_cast<float>(from));
    all.broadcast("news", news.view(), heard.view(), size - 1).wait();
    EXPECT_THAT(heard.values(), Each(static_cast<float>(size - 1)));
    EXPECT_THAT(news.values(), Each(static_cast<float>(rank)));
    // Rows that the ranks divide, rows that they do not, and fewer rows than ranks.
    for (std::size_t const rows : {3 * world, 3 * world + 1, std::size_t{1}}) {
        std::vector<float> values(3 * rows);
        std::iota(values.begin(), values.end(), 0.0f);
        gpu_vector<float> const in(values);
        exchange_call call;
        call.shape = make_shape(std::array<std::int64_t, 2>{static_cast<std::int64_t>(rows), 3});
        auto const shares = all.reducescatter("shares", in.view(), {}, reduction::average, call);
        shares.wait();
        auto const share = share_of(rows, size, rank);
        auto const got = test::download<float>(shares.result());
        ASSERT_EQ(got.size(), 3 * share.count);
        for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], static_cast<float>(3 * share.first + i));
        EXPECT_EQ(in.values(), values);
    }
    std::vector<std::int64_t> splits(world);
    std::vector<std::int32_t> sent;
    for (std::size_t to = 0; to < world; ++to) {
        splits[to] = static_cast<std::int64_t>(to);
        sent.insert(sent.end(), to, static_cast<std::int32_t>(100 * own + to));
    }
    gpu_vector<std::int32_t> const parcels(sent);
    auto const swapped = all.alltoall("parcels", parcels.view(), splits);
    swapped.wait();
    auto const got = test::download<std::int32_t>(swapped.result());
    ASSERT_EQ(got.size(), world * own);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], static_cast<std::int32_t>(100 * (i / own) + own));
}

TEST(exchange_on_device, groups_are_prepared_and_hold_both_kinds_of_memory) {
    exchange all(test::who(), quick());
    auto const wanted = static_cast<float>(sum_to(all.size()));
    gpu_vector<float> const first(filled(10, 0)), second(filled(33, 0));
    std::vector<float> third(7);
    std::vector<named_tensor> const tensors{{"first", first.view(), first.view()},
                                            {"second", second.view(), second.view()},
                                            {"third", view_of(std::span(third)), view_of(std::span(third))}};
    auto group = all.prepare("group", tensors, reduction::sum);
    auto const stream = cuda::make_stream(*test::gpu());
    for (int step = 0; step < 3; ++step) {
        gpu_vector<float> const values(filled(33, all.rank() + 1));
        {
            cuda::device::scope const current(*test::gpu());
            cuda::driver const& with = test::gpu()->with();
            auto const address = [](gpu_vector<float> const& of) { return std::bit_cast<cuda::device_address>(of.view().data); };
            for (auto const* each : {&first, &second})
                cuda::check(
                    with, with.copy_device_to_device(address(*each), address(values), each->view().bytes(), stream.get().handle),
                    "cuMemcpyDtoDAsync");
        }
        std::ranges::fill(third, static_cast<float>(all.rank() + 1));
        auto const started = group.start(stream.get().handle);
        started.order(stream.get().handle);
        started.wait();
        EXPECT_THAT(first.values(stream.get().handle), Each(wanted));
        EXPECT_THAT(second.values(stream.get().handle), Each(wanted));
        EXPECT_THAT(third, Each(wanted));
    }
}

TEST(exchange_on_device, who_has_joined_takes_part_with_neutral_elements) {
    exchange all(test::who(), quick());
    if (all.size() < 2) GTEST_SKIP() << "one rank has no others to wait for";
    int const last = all.size() - 1;
    auto const others = static_cast<float>(sum_to(last));
    if (all.rank() == last) return all.join().wait();
    gpu_vector<float> const a(filled(9, all.rank() + 1)), b(filled(10, all.rank() + 1)), c(filled(8, all.rank() + 1)),
        rows(filled(3, all.rank()));
    auto const sum = all.allreduce("sum", a.view(), a.view(), reduction::sum);
    auto const least = all.allreduce("least", b.view(), b.view(), reduction::min);
    sum.wait();
    least.wait();
    all.allreduce("sum again", c.view(), c.view(), reduction::sum).wait();
    auto const gathered = all.allgather("rows", rows.view());
    gathered.wait();
    EXPECT_THAT(a.values(), Each(others));
    EXPECT_THAT(b.values(), Each(1.0f));
    EXPECT_THAT(c.values(), Each(others));
    EXPECT_EQ(gathered.result().count, 3 * static_cast<std::size_t>(last));
    auto const join = all.join();
    join.wait();
}

TEST(exchange_on_device, adasum_is_that_of_host_memory) {
    exchange all(test::who(), quick());
    std::vector<float> values(50);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(std::sin(static_cast<double>(i) * (all.rank() + 1)));
    gpu_vector<float> const tensor(values);
    all.allreduce("device", tensor.view(), tensor.view(), reduction::adasum, {.scale = {0.5, 2}}).wait();
    all.allreduce("host", view_of(std::span(values)), view_of(std::span(values)), reduction::adasum, {.scale = {0.5, 2}}).wait();
    EXPECT_EQ(tensor.values(), values);
}

TEST(exchange_on_device, process_sets_have_lanes_of_their_own) {
    exchange all(test::who(), quick());
    std::vector<int> odd;
    for (int rank = 1; rank < all.size(); rank += 2) odd.push_back(rank);
    int const set = odd.empty() ? 0 : all.add_process_set(odd);
    gpu_vector<float> const a(filled(1000, 1)), b(filled(2000, 1));
    for (int step = 0; step < 6; ++step) {
        gpu_vector<float> const c(filled(3, 2));
        auto const first = all.allreduce("a", a.view(), a.view(), reduction::average);
        auto const second = all.allreduce("b", b.view(), b.view(), reduction::average);
        if (all.rank_in(set) >= 0) all.allreduce("c", c.view(), c.view(), reduction::sum, {.set = set}).wait();
        first.wait();
        second.wait();
        if (all.rank_in(set) >= 0) {
            EXPECT_THAT(c.values(), Each(2.0f * static_cast<float>(all.size_of_set(set))));
        }
    }
    EXPECT_THAT(a.values(), Each(1.0f));
    EXPECT_THAT(b.values(), Each(1.0f));
}

TEST(exchange_on_device, memory_of_another_kind_on_another_rank_is_told_to_all) {
    exchange all(test::who(), quick());
    if (all.size() < 2) GTEST_SKIP() << "one rank agrees with itself";
    gpu_vector<float> const on_device(filled(4, 1));
    std::vector<float> on_host(4, 1.0f);
    auto const view = all.rank() == 0 ? view_of(std::span(on_host)) : on_device.view();
    try {
        all.allreduce("which", view, view, reduction::sum).wait();
        ADD_FAILURE() << "nothing was thrown";
    } catch (comm_error const& problem) {
        EXPECT_EQ(problem.code(), errc::peer_failed);
        EXPECT_THAT(problem.what(), HasSubstr("\"which\""));
        EXPECT_THAT(problem.what(), HasSubstr("host memory"));
        EXPECT_THAT(problem.what(), HasSubstr("device memory"));
    }
    all.allreduce("both", on_device.view(), on_device.view(), reduction::sum).wait();
    EXPECT_THAT(on_device.values(), Each(static_cast<float>(all.size())));
}

}  // namespace
}  // namespace muster
