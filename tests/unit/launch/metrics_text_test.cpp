// Metrics of a run's samples, in the text format of Prometheus.
#include "launch/samples/metrics_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using testing::HasSubstr;
using testing::Not;

run_samples make() {
    rank_sample rank;
    rank.rank = 5;
    rank.user_s = 12.5;
    rank.memory_bytes = 1ull << 30;
    rank.waits.emplace().waited_s = 0.25;
    rank.data_wait_s = 1.5;
    gpu_sample gpu;
    gpu.number = "0/3";
    gpu.busy_percent = 87;
    gpu.clock_mhz = 1980;
    node_sample node;
    node.host = "n\"1";
    node.ranks = {rank};
    node.gpus = {gpu};
    run_samples all;
    all.job = "4711";
    all.world_size = 8;
    all.nodes = {node};
    return all;
}

TEST(metrics_text, has_what_is_known_in_units_of_the_standard) {
    auto const text = metrics_text(make(), "ada", "77");
    EXPECT_THAT(
        text,
        HasSubstr("# TYPE muster_rank_user_seconds_total counter\n"
                  "muster_rank_user_seconds_total{job_id=\"4711\",run=\"77\",user=\"ada\",host=\"n\\\"1\",rank=\"5\"} 12.5\n"));
    EXPECT_THAT(text, HasSubstr("muster_rank_resident_memory_bytes{job_id=\"4711\",run=\"77\",user=\"ada\",host=\"n\\\"1\",rank="
                                "\"5\"} 1073741824\n"));
    EXPECT_THAT(
        text,
        HasSubstr(
            "muster_rank_waiting_seconds_total{job_id=\"4711\",run=\"77\",user=\"ada\",host=\"n\\\"1\",rank=\"5\"} 0.25\n"));
    EXPECT_THAT(
        text,
        HasSubstr(
            "muster_rank_data_waiting_seconds_total{job_id=\"4711\",run=\"77\",user=\"ada\",host=\"n\\\"1\",rank=\"5\"} 1.5\n"));
    EXPECT_THAT(text,
                HasSubstr("muster_gpu_busy_ratio{job_id=\"4711\",run=\"77\",user=\"ada\",host=\"n\\\"1\",gpu=\"0/3\"} 0.87\n"));
    EXPECT_THAT(
        text,
        HasSubstr("muster_gpu_clock_hertz{job_id=\"4711\",run=\"77\",user=\"ada\",host=\"n\\\"1\",gpu=\"0/3\"} 1980000000\n"));
    EXPECT_THAT(text, HasSubstr("muster_run_ranks{job_id=\"4711\",run=\"77\",user=\"ada\"} 8\n"));
}

TEST(metrics_text, leaves_out_what_is_not) {
    auto const text = metrics_text(make(), "ada", "77");
    for (auto const* name : {"system_seconds", "threads", "throttled", "power", "temperature", "errors"})
        EXPECT_THAT(text, Not(HasSubstr(name)));
}

}  // namespace
}  // namespace muster
