#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "bench/predict/measured_step.hpp"
#include "bench/predict/simulation.hpp"
#include "bench/tools/gradient_sets.hpp"
#include "sample_study.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

std::string refusal_of(study const& results, std::optional<double> steps) {
    try {
        steps_of_study(results, steps, "results.json");
    } catch (error const& e) {
        return e.what();
    }
    return "no error";
}

TEST(measured_step, is_the_median_of_each_number_of_ranks_in_parts) {
    auto const measured = steps_of_study(sample_study(), {}, "x");
    EXPECT_EQ(measured.from, "train_s / steps");
    auto const& all = measured.rows;
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0].ranks, 1);
    EXPECT_DOUBLE_EQ(all[0].step_s, 8.0 / 938);
    EXPECT_DOUBLE_EQ(all[0].input_s, 0.03125 / 938);
    EXPECT_DOUBLE_EQ(all[0].exposed_s, 0.125 / 938);
    EXPECT_DOUBLE_EQ(all[0].compute_s, 8.0 / 938 - 0.15625 / 938);
    EXPECT_DOUBLE_EQ(all[1].step_s, 4.5 / 469);
    EXPECT_FALSE(all[1].oversubscribed);
    EXPECT_TRUE(all[2].oversubscribed);
}

TEST(measured_step, of_another_program_is_its_judged_time_over_its_steps) {
    auto s = plain_study({1, 2}, {{10, 12, 14}, {7, 7, 7}});
    s.plan.judged = {"loop_s", false};
    for (auto& run : s.runs) run.metrics = {{"loop_s", "", 0, {run.wall_s - 2}}};
    EXPECT_THAT(refusal_of(s, {}), HasSubstr("print the metric 'steps', or give --steps"));
    EXPECT_TRUE(steps_of_study(s, {}, "x", false).rows.empty());
    auto const all = steps_of_study(s, 100, "x");
    EXPECT_EQ(all.from, "loop_s / 100");
    ASSERT_EQ(all.rows.size(), 2u);
    EXPECT_DOUBLE_EQ(all.rows[0].step_s, 0.1);
    EXPECT_DOUBLE_EQ(all.rows[0].compute_s, 0.1);
    for (auto& run : s.runs) run.metrics[0].unit = "ms";
    EXPECT_DOUBLE_EQ(steps_of_study(s, 100, "x").rows[0].step_s, 1e-4);
}

TEST(measured_step, is_never_of_the_whole_command) {
    auto s = plain_study({1, 2}, {{10}, {7}});
    EXPECT_THAT(refusal_of(s, 100),
                testing::AllOf(HasSubstr("launching and start-up"), HasSubstr("train_s"), HasSubstr("--compute-ms")));
    EXPECT_TRUE(steps_of_study(s, 100, "x", false).rows.empty());
    s.plan.judged = {"tokens_per_s", true};  // of how many a step is, nobody knows
    s.plan.batch = 32;
    for (auto& run : s.runs) run.metrics = {{"tokens_per_s", "", 0, {5}}};
    EXPECT_THAT(refusal_of(s, 100), HasSubstr("start-up"));
}

TEST(measured_step, follows_from_rates_and_steps) {
    auto s = plain_study({1, 2}, {{10}, {7}});
    auto const with = [&](char const* name, double one, double two) {
        for (auto& run : s.runs) run.metrics = {{name, "", 0, {run.ranks == 1 ? one : two}}};
        auto const all = steps_of_study(s, {}, "x");
        EXPECT_DOUBLE_EQ(all.rows.at(0).step_s, 0.5) << name;
        EXPECT_DOUBLE_EQ(all.rows.at(1).step_s, 0.25) << name;
        return all.from;
    };
    EXPECT_EQ(with("step_ms", 500, 250), "step_ms");
    EXPECT_EQ(with("steps_per_s", 2, 4), "1 / steps_per_s");
    s.plan.batch = 32;
    s.plan.series = work_series::strong;
    EXPECT_EQ(with("images_per_s", 64, 128), "batch 32 / images_per_s");
    s.plan.series = work_series::weak;
    EXPECT_EQ(with("samples_per_s", 64, 256), "batch 32 x ranks / samples_per_s");
    for (auto& run : s.runs) run.metrics.push_back({"loader_wait_s", "s", 0, {1}});
    EXPECT_THAT(refusal_of(s, {}), HasSubstr("--steps")) << "waiting is of all steps";
    EXPECT_DOUBLE_EQ(steps_of_study(s, 10, "x").rows.at(1).compute_s, 0.15);
}

TEST(measured_step, has_the_spread_of_its_runs) {
    auto s = plain_study({1, 2}, {{6.86, 7.04, 7.52}, {3.5, 3.92, 3.6}});
    for (auto& run : s.runs) run.metrics = {{"train_s", "s", 0, {run.wall_s}}, {"allreduce_wait_s", "s", 0, {run.ranks - 1.0}}};
    s.runs[0].warmup = true;
    auto all = steps_of_study(s, 10, "x");
    EXPECT_TRUE(all.over_steps);
    EXPECT_EQ(all.rows.at(0).runs, 2);
    EXPECT_DOUBLE_EQ(all.rows.at(0).least_compute_s, 0.704);
    EXPECT_DOUBLE_EQ(all.rows.at(0).most_compute_s, 0.752);
    EXPECT_DOUBLE_EQ(all.rows.at(1).least_compute_s, 0.25);
    EXPECT_DOUBLE_EQ(all.rows.at(1).most_compute_s, 0.292);
    EXPECT_TRUE(all.rows.at(0).exposed_told);
    EXPECT_FALSE(all.rows.at(0).input_told);
    s.runs[4].metrics.pop_back();  // the longest of 2 ranks does not print its waiting, which is not compute for that
    all = steps_of_study(s, 10, "x");
    EXPECT_EQ(all.rows.at(1).runs, 2);
    EXPECT_DOUBLE_EQ(all.rows.at(1).most_compute_s, 0.26);
}

TEST(measured_step, rests_on_measured_runs) {
    auto s = sample_study();
    for (auto& run : s.runs) run.simulated = true;
    EXPECT_THAT(refusal_of(s, {}), HasSubstr("results.json: is simulated"));
    for (auto& run : s.runs) run.simulated = false, run.status = run_status::failed;
    EXPECT_THAT(refusal_of(s, {}), HasSubstr("no run ended well"));
}

TEST(gradient_set, of_the_published_table_and_of_gpt2_small) {
    EXPECT_EQ(gradients_of("cifar10").parameters(), 23'272'266u);
    EXPECT_EQ(gradients_of("mnist").parameters(), 21'840u);
    EXPECT_EQ(gradients_of("gpt2-small").parameters(), 124'439'808u);
}

TEST(platform_table, is_whole_and_has_sources) {
    for (auto const& each : platform_table()) {
        EXPECT_FALSE(each.sources.empty()) << each.name;
        EXPECT_TRUE((each.port_gbs > 0) != (each.pair_gbs > 0)) << each.name;
        EXPECT_GT(each.memory_gbs, 0) << each.name;
        EXPECT_EQ(read_platform(to_json(each)), each);
    }
    for (auto const& each : published_rates()) EXPECT_NO_THROW(platform_named(each.platform));
    EXPECT_THROW(platform_named("frontier"), error);
}

TEST(simulation_job, survives_its_json) {
    simulation_job job;
    job.platform = platform_named("polaris");
    job.ranks = 8;
    job.tensors = {10, 20};
    job.forward_s = 0.5;
    job.input_s = 0.25;
    EXPECT_EQ(read_job(to_json(job)), job);
    simulation_result result{0.5, 0.25, "mpi"};
    EXPECT_EQ(read_result(to_json(result)), result);
    EXPECT_EQ(to_json(result)["simulated"], true);
}

}  // namespace
}  // namespace muster
