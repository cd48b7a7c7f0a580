// What an exchange keeps of requests: names, where tensors lie, what rounding has lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "comm/exchange/batch/exchange_context.hpp"
#include "comm/exchange/batch/plan_batches.hpp"
#include "comm/exchange/request/exchange_options.hpp"
#include "comm/exchange/request/pending_request.hpp"

namespace muster::detail {

namespace {

using testing::Each;

pending_ptr one_of(std::string name, tensor_io const& io) {
    auto what = std::make_shared<exchange_request>();
    what->name = std::move(name);
    what->tensors = {{"", io.in.type, memory_kind::host, flat_shape(io.in.count)}};
    auto made = pending_ptr::make();
    made->what = std::move(what);
    made->one = io;
    made->bytes = io.in.bytes();
    return made;
}

std::shared_ptr<agreement const> agreed(pending_request const& one) {
    auto made = std::make_shared<agreement>();
    made->what = *one.what;
    return made;
}

struct laid_out {
    std::vector<std::shared_ptr<agreement const>> all;
    std::vector<pending_ptr> units;
    fused_batch batch;
    batch_layout layout;

    void add(std::span<float> in, std::span<float> out) {
        units.push_back(one_of(std::to_string(units.size()), {view_of(in), view_of(out)}));
        all.push_back(agreed(*units.back()));
        batch.items.push_back({batch.items.size(), 0});
        batch.bytes += in.size_bytes();
    }
    batch_layout const& see(bool apart = false) {
        lay_out(batch, all, units, apart, layout);
        return layout;
    }
};

template <typename T>
std::byte const* at(T const* address) {
    return reinterpret_cast<std::byte const*>(address);
}

TEST(batch_layout, what_lies_gap_free_on_both_sides_is_one_run) {
    std::array<float, 10> in{}, out{};
    laid_out a;
    a.add(std::span(in).subspan(0, 4), std::span(out).subspan(0, 4));
    a.add(std::span(in).subspan(4, 6), std::span(out).subspan(4, 6));
    EXPECT_EQ(a.see().runs.size(), 1u);
    EXPECT_EQ(a.layout.runs[0].bytes, 40u);
    EXPECT_EQ(a.layout.whole_in, at(&in[0]));
    EXPECT_EQ(a.layout.whole_out, at(&out[0]));
    EXPECT_EQ(a.see(true).runs.size(), 2u);  // each with a residual of its own
}

TEST(batch_layout, a_gap_on_one_side_parts_the_runs_and_that_side_is_not_whole) {
    std::array<float, 10> in{};
    std::array<float, 11> out{};
    laid_out a;
    a.add(std::span(in).subspan(0, 4), std::span(out).subspan(0, 4));
    a.add(std::span(in).subspan(4, 6), std::span(out).subspan(5, 6));
    EXPECT_EQ(a.see().runs.size(), 2u);
    EXPECT_EQ(a.layout.whole_in, at(&in[0]));
    EXPECT_EQ(a.layout.whole_out, nullptr);
    EXPECT_EQ(a.layout.runs[1].out, at(&out[5]));
}

TEST(batch_layout, outputs_that_lie_half_over_the_inputs_are_not_whole) {
    std::array<float, 12> memory{};
    laid_out a;
    a.add(std::span(memory).subspan(0, 4), std::span(memory).subspan(4, 4));
    a.add(std::span(memory).subspan(4, 4), std::span(memory).subspan(8, 4));
    EXPECT_EQ(a.see().whole_in, at(&memory[0]));
    EXPECT_EQ(a.layout.whole_out, nullptr);
}

TEST(batch_layout, a_rank_that_has_joined_gives_neutral_elements) {
    std::array<float, 4> in{};
    laid_out a;
    a.add(in, in);
    a.add(in, in);
    a.units[1] = nullptr;
    EXPECT_EQ(a.see().runs.size(), 2u);
    EXPECT_EQ(a.layout.runs[1].in, nullptr);
    EXPECT_EQ(a.layout.runs[1].bytes, 16u);
    EXPECT_EQ(a.layout.whole_in, nullptr);
}

TEST(batch_layout, tensors_without_elements_are_no_gap) {
    std::array<float, 4> in{};
    laid_out a;
    a.add(std::span(in).subspan(0, 2), std::span(in).subspan(0, 2));
    a.add({}, {});
    a.add(std::span(in).subspan(2, 2), std::span(in).subspan(2, 2));
    EXPECT_EQ(a.see().runs.size(), 1u);
    EXPECT_EQ(a.layout.whole_in, at(&in[0]));
}

std::string fault_of_group(std::vector<tensor_io> const& tensors) {
    pending_ptr const made = one_of("group", {});
    auto what = std::make_shared<exchange_request>();
    what->name = "group";
    for (std::size_t i = 0; i < tensors.size(); ++i)
        what->tensors.push_back(
            {std::string(1, static_cast<char>('a' + i)), tensors[i].in.type, memory_kind::host, flat_shape(tensors[i].in.count)});
    made->what = std::move(what);
    made->many = std::make_shared<std::vector<tensor_io> const>(tensors);
    return fault_of(*made, 2, 0);
}

TEST(call_checks, a_group_whose_tensors_are_apart_or_only_read_together_is_right) {
    std::array<float, 8> in{}, out{};
    auto const mine = std::span(in), made = std::span(out);
    EXPECT_EQ(fault_of_group({{view_of(mine.first(4)), view_of(mine.first(4))}, {view_of(mine.last(4)), view_of(mine.last(4))}}),
              "");
    EXPECT_EQ(fault_of_group({{view_of(mine.first(4)), view_of(made.first(4))}, {view_of(mine.first(4)), view_of(made.last(4))}}),
              "");
    EXPECT_EQ(fault_of_group({{view_of(mine.first(0)), view_of(mine.first(0))}, {view_of(mine), view_of(mine)}}), "");
}

TEST(call_checks, a_group_names_tensors_that_share_memory_of_which_one_is_written) {
    std::array<float, 8> in{}, out{};
    auto const mine = std::span(in), made = std::span(out);
    auto const both = testing::AllOf(testing::HasSubstr("\"a\" and \"c\" share memory"), testing::HasSubstr("give them apart"));
    tensor_io const other{view_of(made.first(2)), view_of(made.first(2))};
    EXPECT_THAT(fault_of_group({{view_of(mine), view_of(mine)}, other, {view_of(mine), view_of(mine)}}), both);
    EXPECT_THAT(
        fault_of_group({{view_of(mine.last(5)), view_of(mine.last(5))}, other, {view_of(mine.first(4)), view_of(mine.first(4))}}),
        both);
    EXPECT_THAT(fault_of_group(
                    {{view_of(mine.first(2)), view_of(made.last(2))}, other, {view_of(mine.first(1)), view_of(mine.first(1))}}),
                both);
    EXPECT_THAT(
        fault_of_group(
            {{view_of(mine.first(2)), view_of(made.subspan(3, 2))}, other, {view_of(mine.last(2)), view_of(made.subspan(4, 2))}}),
        both);
}

TEST(name_table, a_name_is_in_flight_until_its_request_has_ended) {
    name_table names;
    std::array<float, 1> in{};
    EXPECT_FALSE(name_table::is_waiting(names.last(0, "a")));
    pending_ptr const one = one_of("a", {view_of(std::span(in)), {}});
    names.last(0, "a") = one;
    EXPECT_TRUE(name_table::is_waiting(names.last(0, "a")));
    EXPECT_FALSE(name_table::is_waiting(names.last(1, "a")));  // another process set
    one->state.store(pending_request::phase::done);
    EXPECT_FALSE(name_table::is_waiting(names.last(0, "a")));
    EXPECT_EQ(names.last(0, "a"), one);  // to be used again
}

TEST(name_table, names_that_do_not_come_back_are_forgotten_and_others_are_not) {
    name_table names;
    std::array<float, 1> in{};
    pending_ptr const kept = one_of("kept", {view_of(std::span(in)), {}});
    pending_ptr const waits = one_of("waits", {view_of(std::span(in)), {}});
    kept->state.store(pending_request::phase::done);
    names.last(0, "kept") = kept;
    names.last(0, "waits") = waits;
    for (int i = 0; i < 30000; ++i) {
        auto once = one_of("loss", {view_of(std::span(in)), {}});
        once->state.store(pending_request::phase::done);
        once->submitted = exchange_clock::now();
        names.last(0, std::to_string(i)) = std::move(once);
        kept->submitted = exchange_clock::now();
    }
    EXPECT_EQ(names.last(0, "kept"), kept);
    EXPECT_EQ(names.last(0, "waits"), waits);
    EXPECT_FALSE(names.last(0, "0"));
    EXPECT_EQ(kept->owners.load(), 2u);
}

TEST(residuals, begin_at_zero_and_again_when_the_tensor_has_another_size) {
    residuals lost;
    auto first = lost.of(0, "group", "a", 3);
    EXPECT_THAT(first, Each(0.0f));
    first[1] = 0.5f;
    EXPECT_EQ(lost.of(0, "group", "a", 3)[1], 0.5f);
    EXPECT_EQ(lost.of(1, "group", "a", 3)[1], 0.0f);  // of another process set
    EXPECT_EQ(lost.of(0, "group", "b", 3)[1], 0.0f);
    EXPECT_THAT(lost.of(0, "group", "a", 4), Each(0.0f));
    EXPECT_THAT(lost.of(0, "group", "a", 3), Each(0.0f));
}

TEST(exchange_options, the_static_graph_and_the_autotuner_are_refused_where_they_are_asked_for) {
    for (char const* const name : {"MUSTER_STATIC_GRAPH", "MUSTER_AUTOTUNE"}) {
        environment variables;
        variables.set(name, "0");
        EXPECT_NO_THROW(read_exchange_options(variables));
        variables.set(name, "1");
        try {
            read_exchange_options(variables);
            ADD_FAILURE() << name;
        } catch (error const& problem) {
            EXPECT_EQ(problem.code(), errc::unavailable);
            EXPECT_THAT(problem.what(), testing::StartsWith(std::string(name) + "=1: "));
            EXPECT_THAT(problem.what(), testing::EndsWith("use prepare() (muster_allreduce_prepare in C) for tensors that are "
                                                          "reduced again and again"));
        }
    }
}

TEST(exchange_options, compression_is_read_from_the_environment) {
    environment variables;
    EXPECT_EQ(read_exchange_options(variables).wire, compression::none);
    variables.set("MUSTER_COMPRESSION", "bf16");
    variables.set("MUSTER_ERROR_FEEDBACK", "1");
    EXPECT_EQ(read_exchange_options(variables).wire, compression::bf16);
    EXPECT_TRUE(read_exchange_options(variables).error_feedback);
    variables.set("MUSTER_COMPRESSION", "f8");
    EXPECT_THROW(read_exchange_options(variables), error);
}

}  // namespace

}  // namespace muster::detail
