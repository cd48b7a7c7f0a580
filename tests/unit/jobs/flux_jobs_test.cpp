#include "launch/jobs/queue/flux_jobs.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "launch/jobs/queue/ask_scheduler.hpp"
#include "launch/jobs/queue/queued_job.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// What `flux jobs` of flux-core 0.88.0 printed for flux_jobs_format.
std::vector<queued_job> captured() {
    std::ifstream file(MUSTER_FIXTURES "/flux/jobs_0.88.0.txt");
    std::ostringstream text;
    text << file.rdbuf();
    return parse_flux_jobs(text.str());
}

queued_job named(std::string const& name) {
    for (auto const& job : captured())
        if (job.name == name) return job;
    ADD_FAILURE() << "no job " << name;
    return {};
}

TEST(flux_jobs, of_each_state) {
    EXPECT_EQ(named("running").phase, job_phase::running);
    EXPECT_EQ(named("running").state, "RUN");
    EXPECT_EQ(named("running").nodes, "4");
    EXPECT_EQ(named("running").limit, "0:01:00");
    EXPECT_THAT(named("running").start, HasSubstr("2026-11-25T"));
    EXPECT_EQ(named("running").status, std::nullopt);
    EXPECT_EQ(named("good").state, "COMPLETED");
    EXPECT_EQ(named("good").status, 0);
    EXPECT_EQ(watch_code(named("good")), 0);
    EXPECT_EQ(named("fails with 3").status, 3);
    EXPECT_EQ(watch_code(named("fails with 3")), 3);
    EXPECT_EQ(named("cancelled").state, "CANCELED");
    EXPECT_EQ(watch_code(named("cancelled")), 143);
    EXPECT_EQ(named("cancelled before it ran").status, std::nullopt) << "Flux says -128";
    EXPECT_EQ(watch_code(named("cancelled before it ran")), 143);
    EXPECT_EQ(named("out of time").state, "TIMEOUT");
    EXPECT_EQ(named("out of time").reason, "timeout: resource allocation expired");
    EXPECT_EQ(watch_code(named("out of time")), 124);
    EXPECT_EQ(named("too large").state, "FAILED");
    EXPECT_THAT(named("too large").reason, HasSubstr("alloc: unsatisfiable request"));
    EXPECT_EQ(watch_code(named("too large")), 1);
}

TEST(flux_jobs, why_one_waits) {
    EXPECT_EQ(explain_wait(named("waiting")), "it waits until enough nodes are free");
    EXPECT_THAT(named("waiting").start, HasSubstr("2026-11-25T")) << "as the scheduler expects";
    EXPECT_EQ(named("waiting").phase, job_phase::waiting);
    auto const held = named("held");
    EXPECT_EQ(explain_wait(held), "it is held; release it by flux job urgency " + held.id + " default");
    EXPECT_THAT(explain_wait(named("dependent")), testing::StartsWith("it waits for another job (after-success=f"));
    EXPECT_THAT(explain_wait(named("begins later")), testing::StartsWith("its earliest start time has not come (begin"));
}

TEST(flux_jobs, numbers_have_an_ASCII_f) {
    for (auto const& job : captured()) {
        EXPECT_EQ(job.id.front(), 'f') << job.id;
        EXPECT_EQ(job.raw_id, job.id);
        EXPECT_TRUE(is_job_number(job.id)) << job.id;
    }
    EXPECT_EQ(parse_job_number("\xc6\x92"
                               "6tw1Mjm\n"),
              "f6tw1Mjm");
    EXPECT_EQ(parse_job_number("note of the site\nf6tw1Mjm\n"), "f6tw1Mjm");
    EXPECT_TRUE(
        is_job_number("\xc6\x92"
                      "6tw1Mjm"));
    EXPECT_FALSE(is_job_number("f"));
    EXPECT_FALSE(is_job_number("folder")) << "no l in these numbers";
    EXPECT_FALSE(is_job_number("f12;rm"));
}

TEST(flux_jobs, warnings_are_passed_over) {
    EXPECT_TRUE(parse_flux_jobs("").empty());
    EXPECT_TRUE(parse_flux_jobs("warning: output truncated at 2 jobs.\n").empty());
    EXPECT_TRUE(parse_flux_jobs("\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\n").empty()) << "no number";
}

TEST(flux_jobs, are_asked_for_by_number_or_all_of_the_user) {
    EXPECT_THAT(list_words(queue_kind::flux, {"f1", "f2"}, "me"),
                ElementsAre("flux", "jobs", "--no-header", std::string("--format=") + flux_jobs_format, "f1", "f2"));
    EXPECT_EQ(list_words(queue_kind::flux, {}, "me").size(), 4u);
    EXPECT_THAT(cancel_words(queue_kind::flux, "f1"), ElementsAre("flux", "cancel", "f1"));
}

}  // namespace
}  // namespace muster
