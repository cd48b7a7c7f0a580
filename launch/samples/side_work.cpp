#include "launch/samples/side_work.hpp"

#include <sys/eventfd.h>

#include <condition_variable>
#include <ctime>
#include <mutex>
#include <utility>

#include "base/error.hpp"
#include "base/process/start_thread.hpp"

namespace muster {

struct side_work::state {
    std::mutex mutex;
    std::condition_variable changed;
    bool works = false;
    duration took{0};  ///< processor time of the last piece
    unique_fd ended{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

    void end() {
        timespec spent{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
        std::scoped_lock const lock(mutex);
        took = duration(static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9);
        works = false;
        ::eventfd_write(ended.get(), 1);
        changed.notify_all();
    }
};

side_work::side_work(event_loop& loop, std::string_view what, double rests, event_loop::callback done)
    : loop_(loop), what_(what), rests_(rests), state_(std::make_shared<state>()) {
    if (!state_->ended) return;
    loop_.watch_readable(state_->ended.get(), [this, done = std::move(done)] {
        eventfd_t count = 0;
        ::eventfd_read(state_->ended.get(), &count);
        if (wait_until({})) done();
    });
}

side_work::~side_work() {
    if (state_->ended) loop_.unwatch(state_->ended.get());
}

void side_work::begin(std::function<void()> work) {
    if (works_ || !state_->ended) return;
    works_ = true;
    begun_ = event_loop::clock::now();
    state_->works = true;
    try {
        start_thread(what_, [shared = state_, work = std::move(work)]() mutable {
            try {
                work();
            } catch (std::exception const&) {  // out of memory
            }
            work = nullptr;  // frees what it owns before anybody goes on
            shared->end();
        }).detach();
    } catch (error const&) {
        state_->works = works_ = false;
    }
}

bool side_work::wait_until(event_loop::clock::time_point when) {
    std::unique_lock lock(state_->mutex);
    if (!state_->changed.wait_until(lock, when, [this] { return !state_->works; })) return false;
    if (std::exchange(works_, false))
        rests_until_ = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(state_->took * rests_);
    return true;
}

}  // namespace muster
