// Tests of whose output a file is that several of Slurm's jobs write to, from records as 22.05.8 printed them.
#include "launch/jobs/queue/output_sharers.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

std::string record(int id, std::string const& state, std::string const& start, std::string const& end, std::string const& output,
                   std::string const& task = "") {
    return fmt::format(
        "JobId={}{} JobName=a job JobState={} Reason=None StartTime={} EndTime={} Deadline=N/A Command=/w/StdOut=/w/x StdErr={} "
        "StdIn=/dev/null StdOut={} Power=\n",
        id, task.empty() ? "" : fmt::format(" ArrayJobId=4 ArrayTaskId={}", task), state, start, end, output, output);
}

constexpr char const* at_10 = "2026-11-26T20:00:10";
constexpr char const* at_20 = "2026-11-26T20:00:20";
constexpr char const* at_30 = "2026-11-26T20:00:30";

TEST(output_sharers, are_the_jobs_that_began_the_file_before_and_after) {
    auto const records = record(1, "COMPLETED", at_10, at_20, "/w/train.out") +
                         record(2, "RUNNING", at_30, "2026-11-26T21:00:30", "/w/train.out") +
                         record(3, "PENDING", "2026-11-26T22:00:00", "Unknown", "/w/train.out") +
                         record(5, "RUNNING", at_30, "Unknown", "/w/train.out2") + record(6, "RUNNING", at_30, "Unknown", "/w/y");
    auto const first = find_output_sharers(records, "1", "/w/train.out");
    EXPECT_TRUE(first.has_started && first.has_ended && first.is_first);
    EXPECT_EQ(first.later, "2");
    EXPECT_EQ(first.later_start, at_30);
    auto const second = find_output_sharers(records, "2", "/w/train.out");
    EXPECT_TRUE(second.has_started && !second.has_ended && !second.is_first);
    EXPECT_EQ(second.later, "");
    EXPECT_EQ(second.before, "");  // it had ended
    EXPECT_EQ(second.started_at - first.started_at, 20);
    EXPECT_FALSE(find_output_sharers(records, "3", "/w/train.out").has_started);
    EXPECT_EQ(find_output_sharers(records, "9", "/w/train.out"), output_sharers());
    EXPECT_EQ(find_output_sharers("No jobs in the system\n", "1", "/w/train.out"), output_sharers());
}

TEST(output_sharers, still_run_or_are_tasks_of_one_array) {
    auto const records = record(5, "RUNNING", at_10, "2026-11-26T21:00:10", "/w/a b.out", "0") +
                         record(6, "RUNNING", at_20, "2026-11-26T21:00:20", "/w/a b.out", "1");
    EXPECT_EQ(find_output_sharers(records, "5", "/w/a b.out").later, "4_1");
    EXPECT_EQ(find_output_sharers(records, "6", "/w/a b.out").before, "4_0");
}

TEST(output_sharers, are_not_the_parts_of_one_job) {
    auto const part = [](std::string const& job, std::string one) {
        return one.insert(one.find(" JobName"), " HetJobId=" + job);
    };
    auto const records =
        part("4", record(4, "RUNNING", at_10, "Unknown", "/w/x")) + part("4", record(5, "RUNNING", at_20, "Unknown", "/w/x"));
    EXPECT_EQ(find_output_sharers(records, "4", "/w/x").later, "");
    EXPECT_EQ(find_output_sharers(records + part("6", record(6, "RUNNING", at_30, "Unknown", "/w/x")), "4", "/w/x").later, "6");
}

TEST(output_sharers, do_not_share_a_name_with_a_number) {
    EXPECT_TRUE(has_own_name("/w/slurm-12.out", "12", "12"));
    EXPECT_TRUE(has_own_name("/w/slurm-12_3.out", "12_3", "15"));
    EXPECT_TRUE(has_own_name("/w/15/out", "12_3", "15"));
    EXPECT_FALSE(has_own_name("/w/slurm-112.out", "12", "12"));
    EXPECT_FALSE(has_own_name("/w/train.out", "12", "12"));
    EXPECT_FALSE(has_own_name("/w/train.out", "", ""));
    EXPECT_EQ(with_own_name("/w/train.out"), "train-%j.out");
    EXPECT_EQ(with_own_name("log"), "log-%j");
}

}  // namespace
}  // namespace muster
