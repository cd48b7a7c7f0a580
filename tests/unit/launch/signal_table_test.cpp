#include "launch/system/signal_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "launch/system/signals.hpp"

namespace muster {
namespace {

using testing::Contains;
using testing::Not;

TEST(signal_table, a_signal_that_only_tells_something_ends_no_process_of_muster) {
    for (auto const kind : process_kinds())
        for (int const s : {SIGUSR1, SIGUSR2, SIGALRM})
            EXPECT_NE(deed_of(kind, s), signal_deed::usual) << name_of(kind) << ", SIG" << signal_name(s);
}

TEST(signal_table, what_holds_ranks_and_their_states_outlives_what_schedulers_send_to_all) {
    using enum process_kind;
    for (auto const kind : {launcher, guardian, starter, agent, shim, shim_guard, keeper, keepers})
        for (int const s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
            EXPECT_NE(deed_of(kind, s), signal_deed::usual) << name_of(kind) << ", SIG" << signal_name(s);
}

TEST(signal_table, whoever_takes_signals_sees_its_children_end) {
    for (auto const kind : process_kinds()) {
        auto const taken = taken_signals(kind);
        EXPECT_TRUE(taken.empty() || std::find(taken.begin(), taken.end(), SIGCHLD) != taken.end()) << name_of(kind);
    }
}

TEST(signal_table, no_process_ignores_what_makes_it_go_on) {
    for (auto const kind : process_kinds()) EXPECT_NE(deed_of(kind, SIGCONT), signal_deed::ignored) << name_of(kind);
}

TEST(signal_table, a_launcher_that_cannot_take_them_yet_holds_notices_but_no_request_to_end) {
    EXPECT_THAT(signals_to_hold(), Contains(SIGUSR1));
    EXPECT_THAT(signals_to_hold(), Contains(SIGUSR2));
    EXPECT_THAT(signals_to_hold(), Contains(SIGALRM));
    for (int const s : {SIGINT, SIGTERM, SIGCHLD, SIGTSTP, SIGCONT}) EXPECT_THAT(signals_to_hold(), Not(Contains(s)));
}

TEST(signal_table, other_signals_are_as_the_system_has_them) {
    EXPECT_EQ(deed_of(process_kind::agent, SIGSEGV), signal_deed::usual);
    EXPECT_EQ(deed_of(process_kind::agent, SIGKILL), signal_deed::usual);
}

}  // namespace
}  // namespace muster
