// Tests of the question whether a process has a handler for a signal, asked of this process.
#include "base/process/this_process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace muster {
namespace {

/// Of this process, as long as it lives.
class disposition {
  public:
    disposition(int number, void (*what)(int)) : number_(number) {
        struct sigaction action = {};
        action.sa_handler = what;
        ::sigaction(number, &action, &before_);
    }
    ~disposition() { ::sigaction(number_, &before_, nullptr); }
    disposition(disposition const&) = delete;
    disposition& operator=(disposition const&) = delete;

  private:
    int number_;
    struct sigaction before_ = {};
};

void do_nothing(int) {}

TEST(catches_signal, is_true_of_a_handler_alone) {
    for (int const number : {SIGUSR1, SIGUSR2, 64}) {
        EXPECT_FALSE(catches_signal(::getpid(), number)) << number;
        disposition const caught(number, do_nothing);
        EXPECT_TRUE(catches_signal(::getpid(), number)) << number;
        EXPECT_FALSE(catches_signal(::getpid(), SIGALRM)) << "of another signal";
        disposition const ignored(number, SIG_IGN);
        EXPECT_FALSE(catches_signal(::getpid(), number)) << number;
    }
}

TEST(catches_signal, is_false_where_there_is_nothing_to_ask) {
    EXPECT_FALSE(catches_signal(0, SIGUSR1));
    EXPECT_FALSE(catches_signal(-1, SIGUSR1));
    disposition const caught(SIGUSR1, do_nothing);
    for (int const number : {0, -1, 65, 1000}) EXPECT_FALSE(catches_signal(::getpid(), number)) << number;
}

}  // namespace
}  // namespace muster
