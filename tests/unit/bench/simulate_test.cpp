#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "bench/simulate/local_validation.hpp"
#include "bench/simulate/measured_step.hpp"
#include "bench/simulate/platform_model.hpp"
#include "bench/simulate/published_fit.hpp"
#include "bench/simulate/simulated_study.hpp"
#include "bench/simulate/simulation_job.hpp"
#include "bench/tools/gradient_sets.hpp"
#include "sample_study.hpp"

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

TEST(published_fit, explains_what_is_not_known) {
    published_fit const made{500, 320, 20, 15};
    std::vector<table_point> points;
    known_seconds known;
    for (int const n : {1, 2, 4, 8, 16, 32}) {
        known.push_back(7.0 * n);
        points.push_back({n, made.at(n) + known.back()});
    }
    auto const fit = fit_published(points, known);
    ASSERT_TRUE(fit);
    EXPECT_NEAR(fit->slow_s, 500, 1e-6);
    EXPECT_NEAR(fit->constant_s, 20, 1e-6);
    EXPECT_NEAR(relative_rms(*fit, points, known), 0, 1e-9);
    for (auto const& error : leave_one_out(points, known)) EXPECT_NEAR(error.value(), 0, 1e-6);
    EXPECT_GT(relative_rms(*fit_published(points), points), 0.01) << "without it the points are not explained";
    EXPECT_EQ(published_wait_s(1), 0);
    EXPECT_NEAR(published_wait_s(2), 2e-3 * 2 / 3, 1e-12);
}

TEST(published_fit, is_better_with_the_known_loop_of_horovod) {
    for (auto const* network : {"mnist", "cifar10"}) {
        auto const points = published_points(network);
        known_seconds known;
        for (auto const& each : points)
            known.push_back(size_of_published(network).steps(each.ranks) * published_wait_s(each.ranks));
        EXPECT_LT(relative_rms(*fit_published(points, known), points, known), relative_rms(*fit_published(points), points))
            << network;
    }
}

TEST(measured_step, of_another_program_is_its_judged_time_over_its_steps) {
    auto s = plain_study({1, 2}, {{10, 11, 12}, {6, 6, 6}});
    s.created = s.version = "x";
    for (auto& run : s.runs) run.metrics.push_back({"loader_wait_s", "s", 0, {1}});
    auto const step = step_of_program(to_json(s), "test", 100);
    EXPECT_EQ(step.ranks, 1);
    EXPECT_DOUBLE_EQ(step.step_s, 0.11);
    EXPECT_DOUBLE_EQ(step.input_s, 0.01);
    EXPECT_DOUBLE_EQ(step.compute_s, 0.1);
    EXPECT_THROW(step_of_study(to_json(s), "test"), error) << "nothing tells the steps";
}

TEST(local_validation, reads_what_was_measured_and_keeps_fit_and_prediction_apart) {
    auto const collectives = nlohmann::json::parse(R"({"schema": "muster.collectives-here/1", "hosts": ["a", "a"],
        "context": {"host": "a", "cores": 2}, "pairs": [{"sizes": [{"bytes": 8, "latency_us": [3, 1, 2]},
        {"bytes": 1000, "latency_us": [4]}]}], "tables": [{"collective": "allreduce", "type": "f32",
        "sizes": [{"bytes": 64, "in_place_us": [{"min": 1, "avg": 2, "max": 9}]}]}]})");
    auto const from = read_local_measurements(collectives, "c.json", to_json(sample_study()), "s.json");
    EXPECT_EQ(from.messages, (std::vector<timed_size>{{8, 2}, {1000, 4}}));
    EXPECT_EQ(from.allreduces, (std::vector<timed_size>{{64, 9}}));
    ASSERT_EQ(from.steps.size(), 3u);
    EXPECT_EQ(from.steps[1].ranks, 2);
    EXPECT_EQ(from.bucket_bytes, 65536u);
    local_validation all{from, {5, 0.1, {0.2, -0.1}}, plain_link(2, 5), {{"step", 4, 1, 200, 220}}};
    auto const document = to_json(all);
    EXPECT_EQ(document["simulated"], true);
    EXPECT_NEAR(document["predicted"][0]["error"].get<double>(), 0.1, 1e-12);
    EXPECT_EQ(document["predicted"][0]["simulated"], true);
    auto const text = table_of(all);
    for (auto const* words : {"SIMULATED beside measured", "2 sizes of messages", "FITTED, to the allreduces", "-10% to +20%",
                              "nothing fitted to them", "+10%", "4 ranks take turns on 2 cores"})
        EXPECT_NE(text.find(words), text.npos) << words << "\n" << text;
}

TEST(local_validation, fits_the_rate_of_additions_and_predicts_each_size_from_the_others) {
    // 0.2 ns a byte, and one allreduce that takes 10% longer than that.
    std::vector<explained_allreduce> const all{{1, 1, 0}, {30, 20, 50}, {110, 80, 100}, {220, 100, 500}};
    auto const fit = fit_additions(all);
    EXPECT_GT(fit.gbs, 4) << "the longer one says 4.2";
    EXPECT_LT(fit.gbs, 5);
    ASSERT_EQ(fit.left_out.size(), 4u);
    EXPECT_NEAR(fit.left_out[3], -0.0388, 0.001) << "it is predicted from the others";
    EXPECT_EQ(fit.left_out[0], 0) << "nothing is added there";
}

TEST(platform_model, has_messages_as_they_were_measured) {
    std::vector<timed_size> const messages{{8, 1}, {4096, 5}, {8192, 7}};
    EXPECT_DOUBLE_EQ(message_us(messages, 4), 1);
    EXPECT_DOUBLE_EQ(message_us(messages, 6144), 6);
    EXPECT_DOUBLE_EQ(message_us(messages, 16384), 14) << "at the last one's rate";
    auto model = plain_link(2, 5);
    model.messages = messages;
    EXPECT_EQ(read_platform(to_json(model)), model);
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

TEST(local_validation, names_whose_compute_a_step_was_given) {
    local_validation all;
    all.from.host = "node1";
    all.from.cores = 2;
    all.from.steps = {{1, 0.01, 0.009, 0.001, 0}, {2, 0.012, 0.009, 0.001, 0.002}};
    all.predicted = {{"allreduce of 64KiB", 2, 0, 100, 90},
                     {"step, compute of 1 rank", 2, 1, 12000, 11000},
                     {"step, its own compute", 2, 2, 12000, 12000}};
    auto const text = table_of(all);
    EXPECT_NE(text.find("of rows with \"its own compute\" compute and input are those of the very run"), std::string::npos)
        << text;
    auto const predicted = to_json(all).at("predicted");
    EXPECT_TRUE(predicted[0].at("compute_from").is_null()) << "an allreduce has none";
    EXPECT_EQ(predicted[1].at("compute_from"), 1);
    EXPECT_EQ(predicted[2].at("compute_from"), 2);
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
