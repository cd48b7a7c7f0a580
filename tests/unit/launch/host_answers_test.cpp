#include "launch/elastic/host_answers.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

discovery_answer const two{.hosts = {{"a", 1}, {"b", 1}}}, none{}, fault{.fault = "ended with code 1"},
    last{.fault = "its process was killed", .is_last = true};

TEST(host_answers, change_the_hosts_once) {
    auto script = script_state::unasked;
    host_pool hosts;
    EXPECT_EQ(take(script, hosts, two), host_news::changed);
    EXPECT_EQ(take(script, hosts, two), host_news::none);
    EXPECT_EQ(take(script, hosts, none), host_news::changed) << "no hosts is an answer";
    EXPECT_TRUE(hosts.hosts.empty());
}

TEST(host_answers, that_are_faults_change_no_hosts_and_are_told_once) {
    auto script = script_state::answers;
    host_pool hosts{.hosts = two.hosts};
    EXPECT_EQ(take(script, hosts, fault), host_news::fault);
    EXPECT_EQ(take(script, hosts, fault), host_news::none);
    EXPECT_EQ(hosts.hosts, two.hosts);
    EXPECT_EQ(take(script, hosts, two), host_news::none);
    EXPECT_EQ(take(script, hosts, fault), host_news::fault) << "again, after a good one";
}

TEST(host_answers, end_with_a_word_even_if_the_script_failed_before) {
    auto script = script_state::answers;
    host_pool hosts{.hosts = two.hosts};
    EXPECT_EQ(take(script, hosts, fault), host_news::fault);
    EXPECT_EQ(take(script, hosts, last), host_news::fault);
    EXPECT_EQ(take(script, hosts, last), host_news::none);
    EXPECT_EQ(hosts.hosts, two.hosts);
}

TEST(host_answers, of_which_the_first_is_a_fault_are_useless) {
    auto script = script_state::unasked;
    host_pool hosts;
    EXPECT_EQ(take(script, hosts, fault), host_news::useless);
    EXPECT_EQ(script, script_state::unasked);
    EXPECT_EQ(take(script, hosts, two), host_news::changed);
    EXPECT_EQ(take(script, hosts, fault), host_news::fault);
}

}  // namespace
}  // namespace muster
