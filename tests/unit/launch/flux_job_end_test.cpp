#include "launch/watch/job_end.hpp"

#include <gtest/gtest.h>
#include <signal.h>

namespace muster {
namespace {

// As flux-core 0.88.0 printed them.
constexpr auto begun =
    "{\"timestamp\":1795580977.97,\"name\":\"submit\",\"context\":{\"userid\":7777,\"urgency\":16,\"flags\":0,\"version\":1}}\n"
    "{\"timestamp\":1795580978.09,\"name\":\"start\"}\n"
    "{\"timestamp\":1795580978.13,\"name\":\"memo\",\"context\":{\"uri\":\"ssh://node1/tmp/flux-6jXp5I/local-0\"}}\n";

std::string with_exception(std::string const& type, int severity) {
    return begun + ("{\"timestamp\":1795581038.08,\"name\":\"exception\",\"context\":{\"type\":\"" + type +
                    "\",\"severity\":" + std::to_string(severity) + ",\"note\":\"\",\"userid\":7777}}\n");
}

TEST(flux_job_end, an_exception_of_severity_0_ends_a_job) {
    EXPECT_EQ(parse_flux_events(begun), job_end::going_on);
    EXPECT_EQ(parse_flux_events(with_exception("timeout", 0)), job_end::out_of_time);
    EXPECT_EQ(parse_flux_events(with_exception("cancel", 0)), job_end::cancelled);
    EXPECT_EQ(parse_flux_events(with_exception("node-failure", 0)), job_end::node_failed);
    EXPECT_EQ(parse_flux_events(with_exception("exec", 0)), job_end::unknown);
    EXPECT_EQ(parse_flux_events(with_exception("cancel", 2)), job_end::going_on) << "a word, no end";
}

TEST(flux_job_end, what_is_no_log_of_events_says_nothing) {
    EXPECT_EQ(parse_flux_events(""), job_end::unknown);
    EXPECT_EQ(parse_flux_events("flux-job: No such file or directory\n"), job_end::unknown);
    EXPECT_EQ(parse_flux_events("{\"name\":\"exception\",\"context\":7}\n{\"name\":5}\n[1]\n"), job_end::going_on);
}

TEST(flux_job_end, hosts_that_are_offline) {
    EXPECT_EQ(parse_flux_hosts("node[2-3],node7\n"), (std::vector<std::string>{"node2", "node3", "node7"}));
    EXPECT_TRUE(parse_flux_hosts("\n").empty());
    EXPECT_TRUE(parse_flux_hosts("flux-resource: [Errno 113] No route to host\n").empty());
}

TEST(flux_job_end, SIGALRM_is_the_end_of_the_time_in_Flux) {
    allocation given;
    given.scheduler = scheduler_kind::flux;
    EXPECT_EQ(meaning_of(SIGALRM, given), SIGTERM);
    EXPECT_EQ(meaning_of(SIGHUP, given), SIGTERM) << "from the broker of a script";
    EXPECT_EQ(meaning_of(SIGUSR1, given), SIGUSR1);
    given.scheduler = scheduler_kind::slurm;
    EXPECT_EQ(meaning_of(SIGALRM, given), SIGALRM);
}

TEST(flux_job_end, without_an_answer_the_end_of_the_time_tells) {
    allocation given;
    given.scheduler = scheduler_kind::flux;
    given.ends_at = std::chrono::system_clock::now() + std::chrono::milliseconds(500);
    EXPECT_EQ(ask_job_end(given, {}), job_end::out_of_time) << "Flux's clock began a moment earlier";
    given.ends_at = std::chrono::system_clock::now() + std::chrono::hours(1);
    EXPECT_EQ(ask_job_end(given, {}), job_end::unknown);
}

}  // namespace
}  // namespace muster
