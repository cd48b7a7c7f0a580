#include "io/loader/reader_threads.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>

#include "base/error.hpp"

namespace muster {
namespace {

/// Readers that wait for their end, which `stop` is.
struct waiting_readers {
    std::mutex mutex;
    std::condition_variable ends;
    bool stopped = false;
    void loop() {
        std::unique_lock lock(mutex);
        ends.wait(lock, [this] { return stopped; });
    }
    void stop() {
        std::lock_guard const lock(mutex);
        stopped = true;
        ends.notify_all();
    }
};

TEST(reader_threads, take_no_signals_and_leave_the_callers_mask) {
    sigset_t of_caller, of_reader;
    auto threads = start_readers(
        1, [&] { ::pthread_sigmask(SIG_SETMASK, nullptr, &of_reader); }, [] {});
    threads.front().join();
    ::pthread_sigmask(SIG_SETMASK, nullptr, &of_caller);
    EXPECT_EQ(::sigismember(&of_reader, SIGTERM), 1);
    EXPECT_EQ(::sigismember(&of_caller, SIGTERM), 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose memory no limit of addresses leaves room for

/// In a process of its own: with addresses for a few stacks only, it exits with 0 if that is told and all have ended.
[[noreturn]] void start_more_than_fit() {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlim_t const most = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + (rlim_t{256} << 20);
    rlimit const limit{most, most};
    ::setrlimit(RLIMIT_AS, &limit);
    waiting_readers all;
    try {
        start_readers(
            100000, [&] { all.loop(); }, [&] { all.stop(); });
    } catch (error const& problem) {
        std::_Exit(problem.code() == errc::system ? 0 : 1);
    }
    std::_Exit(2);
}

TEST(reader_threads, end_and_are_joined_where_one_cannot_start) {
    EXPECT_EXIT(start_more_than_fit(), testing::ExitedWithCode(0), "");
}

#endif

}  // namespace
}  // namespace muster
