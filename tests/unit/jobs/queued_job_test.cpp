#include "launch/jobs/queue/queued_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/error.hpp"
#include "launch/jobs/queue/ask_scheduler.hpp"
#include "launch/jobs/queue/job_paths.hpp"

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

// From 23.02 on squeue writes code and signal, where 22.05 writes a wait status.
TEST(queued_job, has_its_exit_code_in_the_forms_of_all_versions) {
    auto const status = [](std::string const& code) {
        auto const jobs = parse_squeue("31|31|FAILED|" + code + "|None|1|0:01|10:00|2026-11-25T03:13:30|s.sh\n");
        EXPECT_EQ(jobs.size(), 1u) << code;
        return jobs.empty() ? std::optional(-1) : jobs[0].status;
    };
    EXPECT_EQ(status("0:0"), 0);
    EXPECT_EQ(status("3:0"), 3);
    EXPECT_EQ(status("0:9"), 137);
    EXPECT_EQ(status("0:15"), 143);
    EXPECT_EQ(status("768"), 3);
    EXPECT_EQ(status("9"), 137);
    for (auto const* strange : {"", " ", "4294967294", "-1", "0:4294967294", "3:", ":9", "3:0:1", "N/A", "SUCCESS", "256:0"})
        EXPECT_EQ(status(strange), std::nullopt) << strange;
    EXPECT_EQ(parse_squeue("31|31|RUNNING|0:0|None|1|0:01|10:00|2026-11-25T03:13:30|s.sh\n").at(0).status, std::nullopt);
}

TEST(queued_job, is_not_lost_for_a_strange_field) {
    auto const row = [](std::string const& line) {
        auto const jobs = parse_squeue(line + "\n");
        EXPECT_EQ(jobs.size(), 1u) << line;
        return jobs.empty() ? queued_job{} : jobs[0];
    };
    EXPECT_EQ(row("31|31|||||||").id, "31");
    EXPECT_EQ(row("31|31|||||||").state, "UNKNOWN");
    EXPECT_EQ(row("31|31|RUNNING").phase, job_phase::running) << "columns that are missing";
    EXPECT_EQ(row("31||RUNNING|x|y|z|1:00|?|?|").id, "31");
    EXPECT_EQ(row("|31_4|RUNNING|x|y|z|1:00|?|?|n").raw_id, "31_4");
    EXPECT_EQ(row("31|31|RUNNING|0:0|None|1|0:01|10:00|N/A|a|b|c").name, "a|b|c");
    EXPECT_EQ(row("31+1|31+1|RUNNING|0:0|None|1|0:01|10:00|N/A|het").raw_id, "31+1");
    EXPECT_EQ(row("31|31|RUNNING|0:0|None|NO_VAL|INVALID|NOT_SET|4294967294|n").used, "");
}

// A state of a Slurm that is newer than this program.
TEST(queued_job, of_an_unknown_state_goes_on) {
    auto const phase = [](std::string const& state, std::string const& used) {
        return parse_squeue("31|31|" + state + "|0:0|None|1|" + used + "|10:00|N/A|x\n").at(0).phase;
    };
    EXPECT_EQ(phase("EXPEDITING", "0:00"), job_phase::waiting);
    EXPECT_EQ(phase("HOVERING", "0:00"), job_phase::waiting);
    EXPECT_EQ(phase("HOVERING", "0:07"), job_phase::running);
    EXPECT_EQ(phase("?", ""), job_phase::waiting);
    EXPECT_EQ(phase("CANCELLED by 7777", "0:07"), job_phase::ended);
    for (auto const* over : {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE",
                             "OUT_OF_MEMORY", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL"})
        EXPECT_EQ(phase(over, "0:07"), job_phase::ended) << over;
    for (auto const* goes_on : {"RUNNING", "SUSPENDED", "STOPPED", "COMPLETING", "STAGE_OUT", "SIGNALING", "RESIZING"})
        EXPECT_EQ(phase(goes_on, "0:07"), job_phase::running) << goes_on;
    for (auto const* waits :
         {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD", "CONFIGURING"})
        EXPECT_EQ(phase(waits, "0:07"), job_phase::waiting) << waits;
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
    EXPECT_THAT(wait("user env retrieval failed requeued held"), HasSubstr("--export=ALL"));
    EXPECT_EQ(wait("SomethingNew"), "SomethingNew");
    EXPECT_EQ(wait("None"), "the scheduler gives no reason yet");
}

TEST(queued_job, tells_why_one_never_started) {
    auto const why = [](std::string const& state, std::string const& used, std::string const& reason) {
        return explain_no_start(parse_squeue("1|1|" + state + "|0|" + reason + "|1|" + used + "|5:00|N/A|x\n").at(0));
    };
    EXPECT_EQ(why("CANCELLED", "0:00", "DependencyNeverSatisfied"),
              "the job that it depends on did not end as it must (DependencyNeverSatisfied)");
    EXPECT_EQ(why("CANCELLED", "0:00", "Dependency"), "") << "a user cancelled it while it waited";
    EXPECT_EQ(why("CANCELLED", "0:07", "DependencyNeverSatisfied"), "");
    EXPECT_EQ(why("PENDING", "0:00", "DependencyNeverSatisfied"), "") << "it may still be mended";
}

std::string read(std::string const& path) {
    std::ifstream file(std::string(MUSTER_SOURCE_DIR) + "/tests/fixtures/" + path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

queued_job const& find(std::vector<queued_job> const& jobs, char const* id) {
    for (auto const& job : jobs)
        if (job.id == id) return job;
    throw error(errc::not_found, std::string("no job ") + id);
}

// The fixtures are what an OpenPBS 23.06 printed for `qstat -x -t -f -F dsv ID...`.
TEST(queued_job, is_read_from_qstat) {
    auto const jobs = parse_qstat(read("pbs_jobs/queue.dsv"));
    ASSERT_EQ(jobs.size(), 9u);
    auto const& runs = find(jobs, "85.head");
    EXPECT_EQ(runs.name, "STDIN");
    EXPECT_EQ(runs.phase, job_phase::running);
    EXPECT_EQ(runs.nodes, "1");
    EXPECT_EQ(runs.limit, "00:01:00");
    EXPECT_EQ(runs.start, "Mon Nov 23 06:52:59 2026");
    EXPECT_EQ(runs.owner, "tester@head.lab.example");
    EXPECT_TRUE(is_meant(runs, "85"));
    EXPECT_FALSE(is_meant(runs, "8"));
    auto const& of_array = find(jobs, "87[2].head");
    for (auto const* asked : {"87", "87.head", "87[]", "87[].head", "87[2]"}) EXPECT_TRUE(is_meant(of_array, asked)) << asked;
    for (auto const* asked : {"8", "87.other", "87[3]", "87[1].head"}) EXPECT_FALSE(is_meant(of_array, asked)) << asked;
    EXPECT_EQ(as_pbs_array("87"), "87[]");
    EXPECT_EQ(as_pbs_array("87.head.lab"), "87[].head.lab");
    EXPECT_EQ(as_pbs_array("87[2].head"), "87[2].head");
    EXPECT_EQ(explain_wait(find(jobs, "84.head")), "it is held; release it by qrls");
    EXPECT_EQ(explain_wait(find(jobs, "88.head")), "it waits for another job (afterok:85.head@head)");
    EXPECT_EQ(explain_wait(find(jobs, "89.head")), "its earliest start time has not come (Mon Nov 23 07:52:00 2026)");
    auto const& task = find(jobs, "87[2].head");
    EXPECT_EQ(task.phase, job_phase::waiting);
    EXPECT_EQ(task.start, "") << "the array's own, which is over";
    EXPECT_EQ(task.reason, "");
}

TEST(queued_job, of_pbs_that_has_ended) {
    auto const jobs = parse_qstat(read("pbs_jobs/ended.dsv"));
    auto const code = [&](char const* id) { return watch_code(find(jobs, id)); };
    EXPECT_EQ(code("84.head"), 143) << "deleted while it was held";
    EXPECT_EQ(code("85.head"), 143) << "deleted while it ran";
    EXPECT_EQ(code("86.head"), 124) << "out of time";
    EXPECT_EQ(code("88.head"), 143) << "the job that it waited for did not end well";
    EXPECT_THAT(find(jobs, "88.head").reason, HasSubstr("afterok:85.head@head"));
    EXPECT_EQ(find(jobs, "85.head").used, "00:00:04");
}

TEST(queued_job, of_an_array_of_pbs) {
    auto const jobs = without_begun_arrays(parse_qstat(read("pbs_jobs/array.dsv")));
    ASSERT_EQ(jobs.size(), 3u) << "the array's own row says 0 whatever its tasks do";
    EXPECT_EQ(find(jobs, "90[1].head").status, 143);
    EXPECT_EQ(find(jobs, "90[2].head").status, 0);
    EXPECT_EQ(find(jobs, "90[3].head").status, 143) << "deleted before it ran; the row has the array's exit status";
    for (auto const* asked : {"90", "90.head", "90[]", "90[].head", "90[1]", "90[1].head"})
        EXPECT_TRUE(is_meant(jobs[0], asked)) << asked;
    for (auto const* asked : {"9", "90.other", "9[]", "90[2]", "90[].other"}) EXPECT_FALSE(is_meant(jobs[0], asked)) << asked;
    auto const alone = parse_qstat("Job Id: 4[].head|job_state=Q|array=True\n");
    EXPECT_EQ(without_begun_arrays(alone), alone);
}

TEST(queued_job, of_an_array_whose_server_keeps_no_history) {
    auto const jobs = without_begun_arrays(parse_qstat(read("pbs_jobs/array_without_history.dsv")));
    ASSERT_EQ(jobs.size(), 3u);
    EXPECT_EQ(find(jobs, "91[1].head").phase, job_phase::ended);
    EXPECT_EQ(find(jobs, "91[1].head").status, std::nullopt) << "the row has the array's exit status";
    EXPECT_EQ(find(jobs, "91[2].head").phase, job_phase::running);
    EXPECT_EQ(find(jobs, "91[3].head").phase, job_phase::waiting);
}

TEST(queued_job, of_pbs_ends_in_codes_of_its_own) {
    auto const code = [](std::string const& status) {
        return watch_code(parse_qstat("Job Id: 1.s|job_state=F|Job_Name=7|stime=x|Exit_status=" + status + "\n").at(0));
    };
    EXPECT_EQ(code("0"), 0);
    EXPECT_EQ(code("7"), 7);
    EXPECT_EQ(code("-29"), 124);
    EXPECT_EQ(code("271"), 143);
    EXPECT_EQ(code("265"), 137);
    EXPECT_EQ(code("-14"), 125);
    auto const waits = parse_qstat("Job Id: 1.s|job_state=Q|comment=Not Running: Insufficient amount of resource: ngpus\n");
    EXPECT_EQ(explain_wait(waits.at(0)), "Insufficient amount of resource: ngpus");
}

TEST(queued_job, of_pbs_has_any_text_in_its_attributes) {
    auto const jobs = parse_qstat("Job Id: 1.s|Variable_List=X=a\\|job_state=F\\\\,Y=new\\nline|job_state=Q|comment=a\\|b\\nc\n");
    ASSERT_EQ(jobs.size(), 1u);
    EXPECT_EQ(jobs[0].state, "Q");
    EXPECT_EQ(jobs[0].reason, "a|b\nc");
}

TEST(queued_job, of_damaged_answers_is_none_or_an_error) {
    EXPECT_TRUE(parse_squeue("").empty());
    EXPECT_TRUE(parse_squeue("1|1\n|||||||||\nslurm_load_jobs|error|Unable to contact\n").empty());
    EXPECT_TRUE(parse_qstat("").empty());
    EXPECT_EQ(parse_qstat("Job Id: \nJob Id: 1.s\nJob Id: |||\n").size(), 1u);
    EXPECT_THROW(parse_qstat("qstat: broken"), parse_error);
}

TEST(job_number, may_be_told_by_a_sluid) {
    EXPECT_TRUE(is_sluid("s6XSM8FX04MW00"));
    for (auto const* none :
         {"12", "s6XSM8FX04MW0", "s6XSM8FX04MW000", "S6XSM8FX04MW00", "s6XSM8FX04MWIL", "submit-results", "f6tw1Mjm", ""})
        EXPECT_FALSE(is_sluid(none)) << none;
    std::string const records =
        "JobId=7 SLUID=s6XSM8FX04MW00 JobName=a UserId=u(1)\n"
        "JobId=14 SLUID=s6XSM8FX04MW01 ArrayJobId=12 ArrayTaskId=3 JobName=b\n"
        "JobId=12 SLUID=s6XSM8FX04MW02 ArrayJobId=12 ArrayTaskId=4-9%2 JobName=b\n";
    EXPECT_EQ(number_of_sluid(records, "s6XSM8FX04MW00"), "7");
    EXPECT_EQ(number_of_sluid(records, "s6XSM8FX04MW01"), "12_3");
    EXPECT_EQ(number_of_sluid(records, "s6XSM8FX04MW02"), "12");
    EXPECT_EQ(number_of_sluid(records, "s6XSM8FX04MW03"), std::nullopt);
    EXPECT_EQ(number_of_sluid("slurm_load_jobs error: Invalid job id specified\n", "s6XSM8FX04MW00"), std::nullopt);
    EXPECT_EQ(parse_job_number("Submitted batch job 12 s6XSM8FX04MW00\n"), "12");
}

TEST(job_number, is_what_the_schedulers_print) {
    EXPECT_EQ(parse_job_number("12\n"), "12");
    EXPECT_EQ(parse_job_number("12;cluster\n"), "12");
    EXPECT_EQ(parse_job_number("welcome to the site\n4711.pbs01\n"), "4711.pbs01");
    EXPECT_EQ(parse_job_number("5[].pbs\n"), "5[].pbs");
    EXPECT_EQ(parse_job_number("22\nYour group has used 41% of its hours\n"), "22");
    EXPECT_EQ(parse_job_number("Dear user,\n22;beta\nsee the site's news of 2026\n"), "22");
    EXPECT_EQ(parse_job_number("Submitted batch job 24\n"), "24");
    EXPECT_EQ(parse_job_number("Submitted batch job 24 on cluster beta\nthank you\n"), "24");
    EXPECT_EQ(parse_job_cluster("Submitted batch job 24 on cluster beta\nthank you\n"), "beta");
    EXPECT_EQ(parse_job_cluster("22;beta\nYour group has hours\n"), "beta");
    EXPECT_EQ(parse_job_number("24 jobs of yours wait\nSubmitted batch job\n"), std::nullopt);
    EXPECT_EQ(parse_job_number("refused\n"), std::nullopt);
    EXPECT_EQ(parse_job_number(""), std::nullopt);
    EXPECT_EQ(parse_job_cluster("welcome\n12;beta\n"), "beta");
    EXPECT_EQ(parse_job_cluster("12\n"), "");
    EXPECT_EQ(parse_job_cluster("12;../beta\n"), "");
    EXPECT_EQ(parse_job_cluster("12;be\x1b[2Jta\n"), "");
    EXPECT_TRUE(is_federated("67108864") && is_federated("67108876_3"));
    EXPECT_FALSE(is_federated("67108863") || is_federated("12_67108864") || is_federated("67108876.pbs") ||
                 is_federated("f6tw1Mjm"));
    EXPECT_FALSE(is_job_number("12;rm"));
    EXPECT_FALSE(is_job_number("--all"));
    EXPECT_FALSE(is_job_number("../12"));
}

TEST(scheduler_question, is_one_for_any_number_of_jobs) {
    EXPECT_EQ(list_words(queue_kind::slurm, {"1", "2_3"}, "u"),
              (std::vector<std::string>{"squeue", "-h", "-t", "all", "-j", "1,2_3", "-O", squeue_format}));
    EXPECT_EQ(list_words(queue_kind::pbs, {"1.s", "2.s"}, "u"),
              (std::vector<std::string>{"qstat", "-x", "-t", "-f", "-F", "dsv", "1.s", "2.s"}));
}

TEST(queued_jobs, tasks_are_in_order) {
    std::vector<queued_job> jobs(6);
    char const* const ids[]{"12_10", "12_[11-19]", "12_2", "9", "12_0", "5[3].pbs"};
    for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].id = ids[i];
    sort_tasks(jobs);
    std::string order;
    for (auto const& job : jobs) order += job.id + ' ';
    EXPECT_EQ(order, "12_0 12_2 12_10 12_[11-19] 9 5[3].pbs ");
}

TEST(job_paths, are_those_of_the_scheduler) {
    EXPECT_EQ(
        parse_job_paths(
            queue_kind::slurm,
            "JobId=18 JobName=job\n   StdErr=/home/a b/err.18\n   StdIn=/dev/null\n   StdOut=/home/a b/slurm-18.out\n", "18"),
        (job_paths{"/home/a b/slurm-18.out", "/home/a b/err.18"}));
    auto const qstat = [](std::string const& join) {
        return "Job Id: 7.head\n    Error_Path = head:/home/u/runs/\n\tlong/job.e7\n    Join_Path = " + join +
               "\n    Output_Path = head.lab:/home/u/out/\n    Priority = 0\n";
    };
    EXPECT_EQ(parse_job_paths(queue_kind::pbs, qstat("n"), "7.head"),
              (job_paths{"/home/u/out/7.head.OU", "/home/u/runs/long/job.e7"}));
    EXPECT_EQ(parse_job_paths(queue_kind::pbs, qstat("oe"), "7.head"),
              (job_paths{"/home/u/out/7.head.OU", "/home/u/out/7.head.OU"}));
    EXPECT_EQ(parse_job_paths(queue_kind::slurm, "", "1"), job_paths());
}

}  // namespace
}  // namespace muster
