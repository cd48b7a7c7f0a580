#include "launch/system/signals.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>

namespace muster {
namespace {

/// A thread of a library: it has blocked no signal, and waits.
void start_foreign_thread() {
    std::thread([] {
        sigset_t none;
        sigemptyset(&none);
        ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
        for (;;) ::pause();
    }).detach();
}

/// 0: none comes. One that is on its way from another thread was there, and is not any more, and comes.
int next_of(unique_fd const& signals) {
    pollfd waits{signals.get(), POLLIN, 0};
    signalfd_siginfo info{};
    while (::poll(&waits, 1, 30'000) == 1)
        if (::read(signals.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
            return static_cast<int>(info.ssi_signo);
    return 0;
}

[[noreturn]] void take_beside_a_foreign_thread(int signal_number) {
    start_foreign_thread();
    auto const signals = take_signals(std::array{signal_number}, "a test");
    for (int i = 0; i < 50; ++i) {
        ::kill(::getpid(), signal_number);
        if (next_of(signals) != signal_number) ::_exit(1);
    }
    ::_exit(0);
}

TEST(signals, a_request_is_not_taken_away_by_a_thread_that_has_not_blocked_it) {
    for (int const s : {SIGTERM, SIGINT, SIGUSR1, SIGCONT})
        EXPECT_EXIT(take_beside_a_foreign_thread(s), testing::ExitedWithCode(0), "") << signal_name(s);
}

[[noreturn]] void see_children_end_beside_foreign_threads() {
    for (int i = 0; i < 4; ++i) start_foreign_thread();
    auto const signals = take_signals(std::array{SIGCHLD}, "a test");
    for (int i = 0; i < 200; ++i) {
        if (pid_t const child = ::fork(); child == 0) ::_exit(0);
        if (next_of(signals) != SIGCHLD || ::waitpid(-1, nullptr, 0) < 0) ::_exit(1);
    }
    ::_exit(0);
}

TEST(signals, the_end_of_a_child_is_seen_beside_threads_that_have_not_blocked_its_signal) {
    EXPECT_EXIT(see_children_end_beside_foreign_threads(), testing::ExitedWithCode(0), "");
}

TEST(signals, a_child_of_fork_ends_by_a_signal_as_usual) {
    EXPECT_EXIT(
        {
            auto const signals = take_signals(std::array{SIGTERM}, "a test");
            pid_t const child = ::fork();
            if (child == 0) {
                sigset_t none;
                sigemptyset(&none);
                ::sigprocmask(SIG_SETMASK, &none, nullptr);
                for (;;) ::pause();
            }
            ::kill(child, SIGTERM);
            int status = 0;
            ::waitpid(child, &status, 0);
            ::_exit(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace muster
