// Tests of what gradient buckets need on measured links, and of what a finding says of it.
#include "bench/communication/bucket_times.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "bench/communication/measured_allreduce.hpp"
#include "bench/study/findings.hpp"
#include "sample_study.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

/// 1 ms a call and 1 us a byte.
link_fit const slow{1000, 1e-3, 0, {}};

TEST(bucket_times, are_hidden_as_far_as_the_backward_pass_goes) {
    gradient_set const two{"two", "here", {10, 20}, {1, 3}};  // 120 bytes of the last tensor come first, after three quarters
    auto const together = times_of_buckets(two, 1000, 0.4, slow);
    EXPECT_EQ(together.buckets, 1u);
    EXPECT_NEAR(together.needed_s, 0.001 + 0.00012, 1e-12) << "all 120 bytes at the end";
    EXPECT_NEAR(together.exposed_s, together.needed_s, 1e-12) << "nothing is left to hide it behind";
    auto const apart = times_of_buckets(two, 4, 0.4, slow);
    EXPECT_EQ(apart.buckets, 2u);
    EXPECT_NEAR(apart.latency_s, 0.002, 1e-12);
    EXPECT_NEAR(apart.needed_s, 0.002 + 0.00012, 1e-12);
    EXPECT_NEAR(apart.exposed_s, 0.001 + 0.00004, 1e-12) << "the first is over by then";
    EXPECT_NEAR(times_of_buckets(two, 4, 0, slow).exposed_s, apart.needed_s, 1e-12) << "no backward pass hides anything";
}

nlohmann::json collectives(char const* own, int ranks = 2) {
    auto cells = nlohmann::json::array();
    for (double const bytes : {1000.0, 100'000.0, 10'000'000.0})
        cells.push_back({{"by", own}, {"bytes", bytes}, {"out_of_place_us", {1}}, {"in_place_us", {50 + bytes / 1e3, 1.0, 1e9}}});
    return nlohmann::json::array({{{"schema", "muster.collectives/1"},
                                   {"collective", "allreduce"},
                                   {"type", "f32"},
                                   {"redop", "sum"},
                                   {"ranks", ranks},
                                   {"gradients", ""},
                                   {"simulated", false},
                                   {"jobs", {{{"name", own}, {"own", true}, {"simulated", false}}}},
                                   {"cells", cells}}});
}

TEST(measured_allreduces, are_fitted_to_the_medians_in_place) {
    auto const all = read_allreduces(collectives("mpi"), "folder/c.json");
    EXPECT_EQ(all.file, "c.json");
    auto const* found = all.find("mpi", 2, false);
    ASSERT_NE(found, nullptr);
    EXPECT_NEAR(found->fitted.alpha_us, 50, 1e-6);
    EXPECT_NEAR(found->fitted.gbs, 1, 1e-9);
    EXPECT_EQ(all.find("mpi", 4, false), nullptr);
    EXPECT_EQ(all.find("mpi", 2, true), nullptr) << "of one node";
    EXPECT_EQ(all.find("shm", 2, false), nullptr);
}

TEST(measured_allreduces, of_several_hosts_are_between_nodes) {
    nlohmann::json sizes = nlohmann::json::array();
    for (double const bytes : {1000.0, 2000.0, 4000.0})
        sizes.push_back(
            {{"bytes", bytes}, {"out_of_place_us", nlohmann::json::array()}, {"in_place_us", {{{"max", 5 + bytes / 1e3}}}}});
    nlohmann::json const here{{"schema", "muster.collectives-here/1"},
                              {"backend", "mpi"},
                              {"hosts", {"a", "b"}},
                              {"tables", {{{"collective", "allreduce"}, {"type", "f32"}, {"redop", "avg"}, {"sizes", sizes}}}}};
    auto const all = read_allreduces(here, "here.json");
    ASSERT_NE(all.find("mpi", 2, true), nullptr);
    EXPECT_NEAR(all.find("mpi", 2, true)->fitted.alpha_us, 5, 1e-6);
}

TEST(measured_allreduces, of_nothing_that_counts_are_refused) {
    auto document = collectives("mpi");
    document[0]["jobs"][0]["own"] = false;
    EXPECT_THROW(read_allreduces(document, "c.json"), error) << "another library's";
    document = collectives("mpi");
    document[0]["type"] = "bf16";
    EXPECT_THROW(read_allreduces(document, "c.json"), error);
    EXPECT_THROW(read_allreduces({{"schema", "muster.io/1"}}, "c.json"), error);
}

/// The sample's training on 2 ranks, a tenth of whose time is waiting for gradients, `exposed_s` of it exposed.
scaling_finding communication_of(double exposed_s, allreduce_measurements const& measured, std::size_t bucket_bytes = 65536) {
    auto s = sample_study();
    for (auto& run : s.runs) {
        auto& epoch = run.train->epochs_done[0];
        epoch.allreduce_wait_mean_s = 0.5;
        epoch.exposed_s = exposed_s;
        epoch.waiting_s = 0.5;
        run.train->bucket_bytes = bucket_bytes;
        run.metrics = metrics_of(*run.train);
    }
    for (auto const& each : find_causes(s, &measured))
        if (each.why == cause::communication) return each;
    ADD_FAILURE() << "no communication";
    return {};
}

TEST(findings, hold_communication_against_measured_allreduces) {
    auto const measured = read_allreduces(collectives("mpi"), "c.json");
    // 469 steps on 2 ranks; 87,360 bytes of mnist in two buckets: 2 x 50 us and 87.36 us a step.
    auto const calls = communication_of(0.06, measured);
    EXPECT_THAT(
        calls.text,
        HasSubstr("a step's 2 buckets need 0.187 ms by the allreduces of c.json (mpi, 2 ranks in node: 50.0 us + 1.00 ns/B)"));
    EXPECT_THAT(calls.text, HasSubstr("0.128 ms are exposed"));
    EXPECT_THAT(calls.advice, HasSubstr("give larger buckets (--bucket-bytes): 0.1"));
    auto const bytes = communication_of(0.06, measured, 1 << 20);
    EXPECT_THAT(bytes.advice, HasSubstr("give more images a rank and step (--batch): 0.0874 ms"))
        << "one bucket cannot be larger";
    auto const late = communication_of(1, measured);
    EXPECT_THAT(late.advice, HasSubstr("would do with 0.187 of the 2.13 ms"));
}

TEST(findings, say_why_nothing_is_compared) {
    EXPECT_THAT(communication_of(0.06, read_allreduces(collectives("shm"), "c.json")).text,
                HasSubstr("not compared with c.json, which has no allreduces of f32 by mpi on 2 ranks in node"));
    EXPECT_THAT(communication_of(0, read_allreduces(collectives("mpi"), "c.json")).text,
                HasSubstr("exposed communication are not known"));
}

}  // namespace
}  // namespace muster
