// Tests of the scheduler's word on why a job ends.
#include "launch/watch/job_end.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(job_end, a_record_of_scontrol_tells_why) {
    EXPECT_EQ(parse_job_end("JobId=2 JobName=x JobState=RUNNING Reason=None PreemptTime=None"), job_end::going_on);
    EXPECT_EQ(parse_job_end("JobId=2 JobState=COMPLETING Reason=None PreemptTime=None"), job_end::cancelled);
    EXPECT_EQ(parse_job_end("JobId=2 JobState=CANCELLED Reason=None PreemptTime=None"), job_end::cancelled);
    EXPECT_EQ(parse_job_end("JobId=2 JobState=COMPLETING Reason=TimeLimit PreemptTime=None"), job_end::out_of_time);
    EXPECT_EQ(parse_job_end("JobId=2 JobState=TIMEOUT Reason=TimeLimit"), job_end::out_of_time);
    EXPECT_EQ(parse_job_end("JobId=2 JobState=COMPLETING Reason=None PreemptTime=2026-11-22T07:45:59"), job_end::preempted);
    EXPECT_EQ(parse_job_end("JobId=2 JobState=COMPLETING Reason=NodeDown PreemptTime=None"), job_end::node_failed);
    EXPECT_EQ(parse_job_end("JobId=2 JobState=PENDING Reason=BeginTime PreemptTime=None"), job_end::requeued);
    EXPECT_EQ(parse_job_end("JobId=2 JobState=COMPLETING Reason=None Restarts=1 PreemptTime=None"), job_end::requeued);
    EXPECT_EQ(parse_job_end("JobId=2 JobState=COMPLETING Reason=None Restarts=1 PreemptTime=None", 1), job_end::cancelled);
    EXPECT_EQ(parse_job_end("JobId=2 JobState=EXPEDITING Reason=None PreemptTime=None"), job_end::requeued) << "from 25.11 on";
    EXPECT_EQ(parse_job_end("JobId=2 SLUID=sEVC1 JobName=x JobState=COMPLETING Reason=TimeLimit"), job_end::out_of_time)
        << "26.05";
    EXPECT_EQ(parse_job_end("JobId=2 JobState=HOVERING Reason=None PreemptTime=None"), job_end::unknown);
    EXPECT_EQ(parse_job_end("JobId=2 JobState=SIGNALING Reason=None PreemptTime=None"), job_end::going_on);
    EXPECT_EQ(parse_job_end("JobId=2 JobName=a JobState=TIMEOUT b UserId=x(1) JobState=RUNNING Reason=None"), job_end::going_on)
        << "a name can hold any words";
    EXPECT_EQ(parse_job_end("JobId=2 JobState=PENDING Reason=None FailedNode=n2 Dependency=(null) Restarts=1"),
              job_end::node_failed);
    EXPECT_EQ(parse_job_end("slurm_load_jobs error: Invalid job id specified"), job_end::unknown);
    EXPECT_EQ(parse_job_end(""), job_end::unknown);
}

TEST(job_end, nodes_that_are_down_are_found) {
    EXPECT_EQ(
        parse_down_nodes("NodeName=n1 Arch=x State=ALLOCATED ThreadsPerCore=1\nNodeName=n2 State=DOWN* Reason=Not responding\n"
                         "NodeName=n3 State=MIXED+DRAIN\nNodeName=n4 State=DOWN+DRAIN\nNodeName=n5 State=IDLE+NOT_RESPONDING\n"),
        (std::vector<std::string>{"n2", "n4", "n5"}));
    // As of a node whose power has gone on 25.05, flags that are new, and those that only sound alike.
    EXPECT_EQ(
        parse_down_nodes("NodeName=n1 State=IDLE+COMPLETING+NOT_RESPONDING\nNodeName=n2 State=MIXED+BLOCKED+EXTERNAL\n"
                         "NodeName=n3 State=DOWN~+POWERED_DOWN\nNodeName=n4 State=IDLE+POWERING_DOWN\nNodeName=n5 State=\n"),
        (std::vector<std::string>{"n1", "n3"}));
    EXPECT_TRUE(parse_down_nodes("slurm_load_node error: Unable to contact slurm controller").empty());
    EXPECT_TRUE(ask_down_nodes({}, {}).empty());
}

// As Slurm 24.11 told of them, when n2 was up again.
TEST(job_end, a_node_for_whose_failure_a_job_ends_is_found) {
    using names = std::vector<std::string>;
    std::string const ended = "JobId=2 JobName=x JobState=NODE_FAIL Reason=NodeDown FailedNode=n2 Dependency=(null)\n";
    EXPECT_EQ(parse_failed_nodes(ended, "2"), names{"n2"});
    EXPECT_EQ(parse_failed_nodes("JobId=3 JobState=RUNNING Reason=None\n" + ended, "2"), names{"n2"});
    EXPECT_EQ(parse_failed_nodes("JobId=3 HetJobId=1 HetJobOffset=1 JobState=NODE_FAIL Reason=NodeDown FailedNode=n3\n", "1"),
              names{"n3"});
    EXPECT_TRUE(parse_failed_nodes(ended, "22").empty()) << "another task of an array";
    EXPECT_TRUE(parse_failed_nodes("JobId=2 JobName=a FailedNode=n1 JobState=RUNNING Reason=None", "2").empty())
        << "a job's name";
    EXPECT_TRUE(parse_failed_nodes("JobId=2 JobState=NODE_FAIL Reason=NodeDown Dependency=(null)", "2").empty())
        << "as 22.05 prints it";
    EXPECT_TRUE(parse_failed_nodes("", "2").empty());
}

// As OpenPBS 23.06 told of them inside the job, in the handler of SIGTERM.
TEST(job_end, PBS_tells_why_in_comment_and_substate) {
    auto const end = [](std::string const& comment, int substate) {
        return end_of_pbs_job({.hosts = {}, .ends_at = {}, .comment = comment, .substate = substate});
    };
    auto const run = std::string("Job run at Mon Nov 23 at 07:03 on (node4:ncpus=1)");
    EXPECT_EQ(end(run, 42), job_end::going_on);
    EXPECT_EQ(end(run + " and terminated by tester@head.lab.example", 42), job_end::cancelled);
    EXPECT_EQ(end(run, 60), job_end::requeued);
    EXPECT_EQ(end("", 0), job_end::going_on);
}

TEST(job_end, without_a_scheduler_to_ask_the_end_of_the_time_tells) {
    allocation given;
    given.scheduler = scheduler_kind::pbs;
    EXPECT_EQ(ask_job_end(given, {}), job_end::unknown);
    given.ends_at = std::chrono::system_clock::now() - std::chrono::seconds(1);
    EXPECT_EQ(ask_job_end(given, {}), job_end::out_of_time);
    given.ends_at = std::chrono::system_clock::now() + std::chrono::hours(1);
    EXPECT_EQ(ask_job_end(given, {}), job_end::unknown);
}

TEST(job_end, the_job_is_named) {
    EXPECT_EQ(describe(job_end::cancelled, ""), "the job was cancelled");
    EXPECT_EQ(describe(job_end::out_of_time, "12"), "job 12 is out of time");
    EXPECT_EQ(describe(job_end::going_on, "12"), "");
}

TEST(job_end, is_explained_without_advice_that_was_taken) {
    EXPECT_EQ(explain_time_limit("1:00:00", false, false),
              "its time limit of 1:00:00 was reached; give it more (--time), or let it save before that (--signal-before-end "
              "USR1@5min), and go on "
              "in the next job (muster submit --chain N)");
    EXPECT_EQ(explain_time_limit("", true, true),
              "its time limit was reached; give it more (--time), or more time to save than --signal-before-end gives now");
    EXPECT_EQ(explain_time_limit("", true, false).find("USR1"), std::string::npos);
    EXPECT_EQ(explain_time_limit("", false, true).find("--chain"), std::string::npos);

    environment last_link{{"MUSTER_CHAIN_LINK", "2"}, {"MUSTER_CHAIN_LENGTH", "2"}};
    EXPECT_NE(explain_time_limit(last_link, false, false).find("--chain"), std::string::npos);
    EXPECT_EQ(explain_time_limit(last_link, false, true).find("--chain"), std::string::npos);
    EXPECT_EQ(
        explain_time_limit(environment{{"MUSTER_CHAIN_LINK", "1"}, {"MUSTER_CHAIN_LENGTH", "2"}}, false, false).find("--chain"),
        std::string::npos);
}

}  // namespace
}  // namespace muster
