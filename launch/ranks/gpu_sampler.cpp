#include "launch/ranks/gpu_sampler.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <utility>

#include "base/error.hpp"
#include "base/process/start_thread.hpp"
#include "base/unique_fd.hpp"

namespace muster {

namespace {

constexpr duration first_look{1};
constexpr duration look_every{10};
constexpr double pauses_per_look = 2000;  ///< the pause after a look is this many times the look's processor time
constexpr duration patience_at_end{0.5};

duration processor_time() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return duration(static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9);
}

}  // namespace

std::vector<gpu> gpus_to_sample(topology const& machine, std::vector<binding> const& ranks, bool only_of_ranks) {
    std::vector<gpu> chosen;
    for (auto const& one : machine.gpus) {
        bool const of_rank = std::ranges::any_of(ranks, [&](binding const& rank) { return rank.device == one; });
        if (one.vendor == gpu_vendor::nvidia && one.known_to_driver && !one.uuid.empty() && (of_rank || !only_of_ranks))
            chosen.push_back(one);
    }
    return chosen;
}

struct gpu_sampler::state {
    std::mutex mutex;
    std::condition_variable changed;
    bool stop = false;
    bool done = false;
    std::vector<gpu_use> last;
    unique_fd event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

    void run(std::vector<gpu> const& gpus) {
        look(gpus);
        std::scoped_lock const lock(mutex);
        done = true;
        changed.notify_all();
    }

    void look(std::vector<gpu> const& gpus) {
        gpu_use_reader const reader(gpus);
        if (reader.empty()) return;
        std::unique_lock lock(mutex);
        while (!stop) {
            lock.unlock();
            auto const before = processor_time();
            auto uses = reader.read();
            auto const pause = std::max(look_every, (processor_time() - before) * pauses_per_look);
            lock.lock();
            last = std::move(uses);
            std::uint64_t const one = 1;
            [[maybe_unused]] auto const n = ::write(event.get(), &one, sizeof one);
            changed.wait_for(lock, pause, [this] { return stop; });
        }
    }
};

gpu_sampler::gpu_sampler(event_loop& loop, std::vector<gpu> gpus, sink take)
    : loop_(loop), gpus_(std::move(gpus)), take_(std::move(take)) {
    if (!gpus_.empty()) starts_ = loop_.after(first_look, [this] { start(); });
}

/// Without a thread, nothing is reported about GPUs, which is no reason to end a run.
void gpu_sampler::start() {
    starts_ = 0;
    auto shared = std::make_shared<state>();
    if (!shared->event) return;
    try {
        start_thread("for the use of GPUs", [shared, gpus = gpus_] { shared->run(gpus); }).detach();
    } catch (error const&) {
        return;
    }
    state_ = std::move(shared);
    loop_.watch_readable(state_->event.get(), [this] { on_event(); });
}

void gpu_sampler::on_event() {
    std::uint64_t count = 0;
    [[maybe_unused]] auto const n = ::read(state_->event.get(), &count, sizeof count);
    std::vector<gpu_use> uses;
    {
        std::scoped_lock const lock(state_->mutex);
        uses = state_->last;
    }
    take_(uses);
}

gpu_sampler::~gpu_sampler() {
    if (starts_ != 0) loop_.cancel(starts_);
    if (!state_) return;
    loop_.unwatch(state_->event.get());
    std::unique_lock lock(state_->mutex);
    state_->stop = true;
    state_->changed.notify_all();
    state_->changed.wait_for(lock, patience_at_end, [this] { return state_->done; });
}

}  // namespace muster
