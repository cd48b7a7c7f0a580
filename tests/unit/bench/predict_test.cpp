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
    auto const all = steps_of_study(sample_study(), {}, "x");
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
    EXPECT_THAT(refusal_of(s, {}), HasSubstr("print the metric 'steps', or give --steps"));
    auto const all = steps_of_study(s, 100, "x");
    ASSERT_EQ(all.size(), 2u);
    EXPECT_DOUBLE_EQ(all[0].step_s, 0.12);
    EXPECT_DOUBLE_EQ(all[0].compute_s, 0.12);
    s.plan.judged = {"rate", true};  // says nothing of time: the whole command does
    for (auto& run : s.runs) run.metrics = {{"rate", "1/s", 0, {5}}};
    EXPECT_DOUBLE_EQ(steps_of_study(s, 100, "x")[0].step_s, 0.12);
}

TEST(measured_step, rests_on_measured_runs) {
    auto s = sample_study();
    for (auto& run : s.runs) run.simulated = true;
    EXPECT_THAT(refusal_of(s, {}), HasSubstr("results.json: is simulated"));
    for (auto& run : s.runs) run.simulated = false, run.status = run_status::failed;
    EXPECT_THAT(refusal_of(s, {}), HasSubstr("no run that ended well"));
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
