#include "comm/backend/processes/fork_count.hpp"

#include <pthread.h>

#include <atomic>

namespace muster::detail {

namespace {

std::atomic<unsigned> forks{0};

void count() noexcept {
    forks.fetch_add(1, std::memory_order_relaxed);
}

// At the library's start: no communicator is older.
[[maybe_unused]] int const registered = ::pthread_atfork(nullptr, nullptr, count);

}  // namespace

unsigned count_forks() noexcept {
    return forks.load(std::memory_order_relaxed);
}

}  // namespace muster::detail
