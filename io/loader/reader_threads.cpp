#include "io/loader/reader_threads.hpp"

#include <pthread.h>
#include <signal.h>

#include "base/process/start_thread.hpp"

namespace muster {

std::vector<std::thread> start_readers(std::size_t count, std::function<void()> const& loop, std::function<void()> const& stop) {
    std::vector<std::thread> threads;
    threads.reserve(count);
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        while (threads.size() < count) threads.push_back(start_thread("for reading samples", loop));
    } catch (...) {
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        stop();
        for (std::thread& each : threads) each.join();
        throw;
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return threads;
}

}  // namespace muster
