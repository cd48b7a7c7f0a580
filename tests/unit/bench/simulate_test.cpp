#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "bench/simulate/measured_step.hpp"
#include "bench/simulate/platform_model.hpp"
#include "bench/simulate/published_fit.hpp"
#include "bench/simulate/simulated_study.hpp"
#include "bench/simulate/simulation_job.hpp"
#include "bench/tools/gradient_sets.hpp"

namespace muster {
namespace {

TEST(published_fit, finds_the_numbers_that_points_were_made_of) {
    published_fit const made{500, 320, 20, 15};
    std::vector<table_point> points;
    for (int const n : {1, 2, 4, 8, 16, 32}) points.push_back({n, made.at(n)});
    EXPECT_DOUBLE_EQ(made.at(2), 270);
    EXPECT_DOUBLE_EQ(made.at(4), 100);
    EXPECT_DOUBLE_EQ(made.at(16), 55);
    auto const fit = fit_published(points);
    ASSERT_TRUE(fit);
    EXPECT_NEAR(fit->slow_s, 500, 1e-6);
    EXPECT_NEAR(fit->fast_s, 320, 1e-6);
    EXPECT_NEAR(fit->constant_s, 20, 1e-6);
    EXPECT_NEAR(fit->several_nodes_s, 15, 1e-6);
    for (auto const& error : leave_one_out(points)) {
        ASSERT_TRUE(error);
        EXPECT_NEAR(*error, 0, 1e-6);
    }
}

TEST(published_fit, too_few_points_determine_nothing) {
    std::vector<table_point> const one_node{{1, 500}, {2, 270}, {4, 100}, {8, 60}};
    EXPECT_FALSE(fit_published(one_node));
    std::vector<table_point> const without_4_and_8{{1, 500}, {2, 270}, {16, 55}};
    EXPECT_FALSE(fit_published(without_4_and_8));
}

TEST(published_fit, is_as_good_as_the_table_allows) {
    for (auto const& [network, most_rms, most_left_out] : {std::tuple{"mnist", 0.0285, 0.29}, {"cifar10", 0.063, 0.68}}) {
        auto const points = published_points(network);
        auto const fit = fit_published(points);
        ASSERT_TRUE(fit);
        EXPECT_LT(relative_rms(*fit, points), most_rms) << network;
        double worst = 0;
        for (auto const& error : leave_one_out(points)) worst = std::max(worst, std::abs(error.value()));
        EXPECT_LT(worst, most_left_out) << network;
        EXPECT_GT(worst, 0.2) << network << ": four parameters on six points are not that certain";
        for (int const n : {16, 32}) {
            EXPECT_GT(fit->at(n) / fit->at(8), 0.9) << network;
            EXPECT_LT(fit->at(n) / fit->at(8), 1.15) << network;
        }
    }
    EXPECT_THROW(published_points("resnet50"), error);
    EXPECT_EQ(size_of_published("mnist").steps(8), 118 * 32);
}

TEST(gradient_set, of_the_published_table_and_of_gpt2_small) {
    EXPECT_EQ(gradients_of("cifar10").parameters(), 23'272'266u);
    EXPECT_EQ(gradients_of("cifar10").elements.size(), 16u);
    EXPECT_EQ(gradients_of("gpt2-small").parameters(), 124'439'808u);
    EXPECT_EQ(gradients_of("resnet50").parameters(), 25'557'032u);
}

TEST(platform_table, is_whole_and_has_sources) {
    EXPECT_EQ(platform_table().size(), 4u);
    for (auto const& each : platform_table()) {
        EXPECT_TRUE((each.port_gbs > 0) != (each.pair_gbs > 0)) << each.name;
        EXPECT_GT(each.local_latency_us, 0) << each.name;
        EXPECT_GT(each.network_latency_us, 0) << each.name;
        EXPECT_LE(each.cards, each.ranks_a_node) << each.name;
        EXPECT_GE(each.sources.size(), 4u) << each.name;
        EXPECT_EQ(read_platform(to_json(each)), each);
    }
    for (auto const& each : published_rates()) EXPECT_NO_THROW(platform_named(each.platform)) << each.platform;
    EXPECT_THROW(platform_named("frontier"), error);
}

TEST(simulation_job, survives_its_json) {
    simulation_job job;
    job.platform = plain_link(10, 12.5);
    job.ranks = 4;
    job.bytes = {4, 1024};
    job.tensors = {3, 2, 1};
    job.backward_s = 0.25;
    job.loss_each_step = true;
    EXPECT_EQ(read_job(to_json(job)), job);
    simulation_result result{
        .ranks = 4, .allreduces = {{1024, 1e-4}}, .step_s = 0.5, .exposed_s = 0.1, .backend = "mpi", .why_backend = "asked"};
    EXPECT_TRUE(to_json(result).at("simulated").get<bool>());
    EXPECT_EQ(read_result(to_json(result)), result);
}

TEST(simulated_study, takes_each_protocols_step_and_constants) {
    simulated_study study;
    study.plan.network = "mnist";
    study.plan.fit = published_fit{500, 320, 20, 15};
    simulation_result const at_2{.ranks = 2, .step_s = 0.01}, at_16{.ranks = 16, .step_s = 0.01};
    double const steps = 938 * 32;
    EXPECT_DOUBLE_EQ(job_of(study.plan, 2).forward_s * 3, 320 / steps);
    EXPECT_DOUBLE_EQ(seconds_of_run(study, at_16), 59 * 32 * 0.01);
    study.plan.published = true;
    EXPECT_DOUBLE_EQ(job_of(study.plan, 2).forward_s * 3, 500 / steps) << "the rank shares its core with its loader";
    EXPECT_DOUBLE_EQ(job_of(study.plan, 4).forward_s * 3, 320 / steps);
    EXPECT_DOUBLE_EQ(seconds_of_run(study, at_2), 469 * 32 * 0.01 + 20);
    EXPECT_DOUBLE_EQ(seconds_of_run(study, at_16), 59 * 32 * 0.01 + 35);
    EXPECT_DOUBLE_EQ(busbw_gbs(1e9, 0.5, 4), 3);
}

TEST(simulated_study, says_so_everywhere) {
    simulated_study study;
    study.plan.network = "mnist";
    study.plan.fit = fit_published(published_points("mnist"));
    study.plan.published = true;
    study.plan.job.platform = platform_named("dgx-a100");
    study.plan.job.tensors = {1};
    study.results = {{.ranks = 1, .step_s = 0.01}, {.ranks = 8, .step_s = 0.01}};
    auto const text = table_of(study);
    EXPECT_NE(text.find("SIMULATED on dgx-a100"), std::string::npos);
    EXPECT_NE(text.find("simulated s"), std::string::npos);
    EXPECT_NE(text.find("FITTED"), std::string::npos);
    EXPECT_NE(text.find("PREDICTED"), std::string::npos);
    auto const document = to_json(study);
    EXPECT_TRUE(document.at("simulated").get<bool>());
    for (auto const& each : document.at("results")) EXPECT_TRUE(each.at("simulated").get<bool>());
    EXPECT_EQ(document.at("fitted").at("points").size(), 6u);
}

TEST(measured_step, is_the_median_run_of_the_fewest_ranks) {
    auto const run = [](int ranks, double train, bool simulated = false) {
        return nlohmann::json{
            {"ranks", ranks},
            {"simulated", simulated},
            {"train",
             {{"epochs_done", {{{"steps", 10}, {"train_s", train}, {"allreduce_wait_s", 0.1}, {"loader_wait_s", 0.2}}}}}}};
    };
    nlohmann::json const study{{"runs", {run(2, 9), run(1, 1), run(1, 2), run(1, 7)}}};
    auto const step = step_of_study(study, "results.json");
    EXPECT_EQ(step.ranks, 1);
    EXPECT_DOUBLE_EQ(step.step_s, 0.2);
    EXPECT_DOUBLE_EQ(step.input_s, 0.02);
    EXPECT_DOUBLE_EQ(step.compute_s, 0.17);
    EXPECT_THROW(step_of_study({{"runs", {run(1, 1, true)}}}, "results.json"), error) << "simulated";
    EXPECT_THROW(step_of_study({{"runs", nlohmann::json::array()}}, "results.json"), error);
}

}  // namespace
}  // namespace muster
