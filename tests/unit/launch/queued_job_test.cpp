#include "launch/jobs/queue/queued_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/error.hpp"
#include "launch/jobs/queue/ask_scheduler.hpp"
#include "launch/jobs/queue/job_number.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

// As a Slurm 22.05 printed it for squeue_format.
constexpr char const* printed =
    "7|7|CANCELLED|0|Priority|1|0:00|10:00|2026-11-22T18:38:40|s.sh\n"
    "1|1|FAILED|768|NonZeroExitCode|1|0:00|10:00|2026-11-22T18:38:41|a | b\n"
    "3|3|PENDING|0|Resources|2|0:00|10:00|2026-11-22T18:53:00|s.sh\n"
    "4|4_[0-2%1]|PENDING|0|Priority|1|0:00|10:00|2026-11-22T19:13:00|s.sh\n"
    "5|5|PENDING|0|JobHeldUser|1|0:00|10:00|N/A|s.sh\n"
    "9|4_1|RUNNING|0|None|1|0:01|5:00|2026-11-22T18:38:42|s.sh\n"
    "slurm_load_jobs warning: something\n";

TEST(queued_job, is_read_from_squeue) {
    auto const jobs = parse_squeue(printed);
    ASSERT_EQ(jobs.size(), 6u);
    EXPECT_EQ(jobs[1].name, "a | b");
    EXPECT_EQ(jobs[1].phase, job_phase::ended);
    EXPECT_EQ(jobs[1].status, 3);
    EXPECT_EQ(jobs[2].phase, job_phase::waiting);
    EXPECT_EQ(jobs[2].start, "2026-11-22T18:53:00");
    EXPECT_EQ(jobs[4].start, "");
    EXPECT_EQ(jobs[5].id, "4_1");
    EXPECT_EQ(jobs[5].raw_id, "9");
    EXPECT_EQ(jobs[5].reason, "");
    EXPECT_EQ(jobs[5].status, std::nullopt);
    EXPECT_TRUE(is_meant(jobs[5], "4"));
    EXPECT_TRUE(is_meant(jobs[5], "4_1"));
    EXPECT_FALSE(is_meant(jobs[5], "4_"));
    EXPECT_TRUE(is_meant(jobs[3], "4"));
    EXPECT_FALSE(is_meant(jobs[0], "4"));
}

queued_job ended(std::string const& state, int wait_status) {
    return parse_squeue("1|1|" + state + "|" + std::to_string(wait_status) + "|None|1|0:01|5:00|N/A|x\n").at(0);
}

TEST(queued_job, has_a_code_to_end_with) {
    EXPECT_EQ(watch_code(ended("COMPLETED", 0)), 0);
    EXPECT_EQ(watch_code(ended("FAILED", 3 << 8)), 3);
    EXPECT_EQ(watch_code(ended("FAILED", 9)), 137);
    EXPECT_EQ(watch_code(ended("FAILED", 0)), 125);
    EXPECT_EQ(watch_code(ended("TIMEOUT", 15)), 124);
    EXPECT_EQ(watch_code(ended("DEADLINE", 0)), 124);
    EXPECT_EQ(watch_code(ended("CANCELLED", 15)), 143);
    EXPECT_EQ(watch_code(ended("OUT_OF_MEMORY", 125 << 8)), 137);
    EXPECT_EQ(watch_code(ended("NODE_FAIL", 0)), 125);
}

TEST(queued_job, tells_why_it_waits) {
    auto const wait = [](std::string const& reason) {
        return explain_wait(parse_squeue("1|1|PENDING|0|" + reason + "|1|0:00|5:00|N/A|x\n").at(0));
    };
    EXPECT_EQ(wait("Resources"), "it is next, and waits until enough nodes are free (Resources)");
    EXPECT_THAT(wait("DependencyNeverSatisfied"), HasSubstr("will never start"));
    EXPECT_THAT(wait("Dependency"), HasSubstr("waits for another job"));
    EXPECT_THAT(wait("ReqNodeNotAvail, UnavailableNodes:node2"), HasSubstr("maintenance"));
    EXPECT_EQ(wait("QOSMaxJobsPerUserLimit"),
              "its quality of service (queue) has reached the most that one job or user may have, in jobs at a time; it starts "
              "when others of "
              "them end (QOSMaxJobsPerUserLimit)");
    EXPECT_THAT(wait("AssocGrpGRES"), HasSubstr("your account has reached the limit of all of its jobs together, in GPUs"));
    EXPECT_THAT(wait("QOSMinGRES"), HasSubstr("at least"));
    EXPECT_EQ(wait("SomethingNew"), "SomethingNew");
    EXPECT_EQ(wait("None"), "the scheduler gives no reason yet");
}

std::string read(std::string const& path) {
    std::ifstream file(std::string(MUSTER_SOURCE_DIR) + "/tests/fixtures/" + path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

TEST(queued_job, is_read_from_qstat) {
    auto const jobs = parse_qstat(read("pbs_jobs/running.json"));
    ASSERT_EQ(jobs.size(), 1u);
    EXPECT_EQ(jobs[0].id, "0.pbshead");
    EXPECT_EQ(jobs[0].name, "sel2x4");
    EXPECT_EQ(jobs[0].phase, job_phase::running);
    EXPECT_EQ(jobs[0].nodes, "2");
    EXPECT_EQ(jobs[0].owner, "pbsuser@pbshead.lab.example");
    EXPECT_TRUE(is_meant(jobs[0], "0"));
}

TEST(queued_job, of_pbs_ends_in_codes_of_its_own) {
    auto const code = [](std::string const& status) {
        return watch_code(
            parse_qstat(R"({"Jobs": {"1.s": {"job_state": "F", "Job_Name": 7, "Exit_status": )" + status + "}}}").at(0));
    };
    EXPECT_EQ(code("0"), 0);
    EXPECT_EQ(code("7"), 7);
    EXPECT_EQ(code("-29"), 124);
    EXPECT_EQ(code("271"), 143);
    EXPECT_EQ(code("265"), 137);
    EXPECT_EQ(code("-14"), 125);
    auto const waits =
        parse_qstat(R"({"Jobs": {"1.s": {"job_state": "Q", "comment": "Not Running: Insufficient amount of resource: ngpus"}}})");
    EXPECT_EQ(explain_wait(waits.at(0)), "Insufficient amount of resource: ngpus");
}

TEST(queued_job, of_damaged_answers_is_none_or_an_error) {
    EXPECT_TRUE(parse_squeue("").empty());
    EXPECT_TRUE(parse_squeue("1|1|RUNNING|\n|||||||||\n").empty());
    EXPECT_TRUE(parse_qstat("").empty());
    EXPECT_TRUE(parse_qstat("{\"Jobs\": [1]}").empty());
    EXPECT_THROW(parse_qstat("qstat: broken"), parse_error);
}

TEST(job_number, is_what_the_schedulers_print) {
    EXPECT_EQ(parse_job_number("12\n"), "12");
    EXPECT_EQ(parse_job_number("12;cluster\n"), "12");
    EXPECT_EQ(parse_job_number("welcome to the site\n4711.pbs01\n"), "4711.pbs01");
    EXPECT_EQ(parse_job_number("5[].pbs\n"), "5[].pbs");
    EXPECT_EQ(parse_job_number("refused\n"), std::nullopt);
    EXPECT_EQ(parse_job_number(""), std::nullopt);
    EXPECT_FALSE(is_job_number("12;rm"));
    EXPECT_FALSE(is_job_number("--all"));
    EXPECT_FALSE(is_job_number("../12"));
}

TEST(scheduler_question, is_one_for_any_number_of_jobs) {
    EXPECT_EQ(list_words(queue_kind::slurm, {"1", "2_3"}, "u"),
              (std::vector<std::string>{"squeue", "-h", "-t", "all", "-j", "1,2_3", "-O", squeue_format}));
    EXPECT_EQ(list_words(queue_kind::pbs, {"1.s", "2.s"}, "u"),
              (std::vector<std::string>{"qstat", "-x", "-f", "-F", "json", "1.s", "2.s"}));
}

}  // namespace
}  // namespace muster
