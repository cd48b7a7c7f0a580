#include "launch/samples/node_sampler.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/process/start_thread.hpp"
#include "base/unique_fd.hpp"
#include "launch/samples/gpu_reader.hpp"
#include "launch/samples/node_reader.hpp"

namespace muster {

namespace {

using clock = event_loop::clock;

constexpr duration first_look{1};
constexpr double rank_pauses = 100;  ///< the pause after a look is at least this many times its processor time
constexpr double gpu_pauses = 2000;
constexpr duration gpu_patience{30};
constexpr duration patience_at_end{0.5};

duration processor_time() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return duration(static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9);
}

}  // namespace

struct node_sampler::state {
    std::mutex mutex;
    std::condition_variable changed;
    bool stop = false;
    int threads = 0;
    unique_fd event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

    std::optional<std::vector<sampled_rank>> asked;  ///< by the loop
    std::optional<node_sample> node;                 ///< the answer
    bool looks = false;                              ///< a look at them is in progress, or its pause has not passed
    clock::time_point rests_until{};

    std::vector<gpu_sample> gpus;  ///< a new look at them
    std::vector<gpu_sample> gpu_names;
    std::optional<clock::time_point> gpu_look_since;

    void tell() const {
        std::uint64_t const one = 1;
        [[maybe_unused]] auto const n = ::write(event.get(), &one, sizeof one);
    }

    void look_at_ranks(sampled_node const& what) {
        rank_reader ranks;
        std::optional<node_reader> node_figures;
        if (what.itself) node_figures.emplace(what.interface, what.towards);
        std::unique_lock lock(mutex);
        for (;;) {
            changed.wait(lock, [this] { return stop || asked; });
            if (stop) return;
            auto const wanted = *std::exchange(asked, std::nullopt);
            lock.unlock();
            auto const before = processor_time();
            auto seen = node_figures ? node_figures->read() : node_sample();
            seen.ranks = ranks.read(wanted);
            auto const pause = (processor_time() - before) * rank_pauses;
            lock.lock();
            node = std::move(seen);
            looks = false;
            rests_until = clock::now() + std::chrono::duration_cast<clock::duration>(pause);
            tell();
        }
    }

    void look_at_gpus(sampled_node const& what) {
        gpu_reader const reader(what.gpus);
        if (reader.empty()) return;
        std::unique_lock lock(mutex);
        gpu_names = reader.names();
        while (!stop) {
            gpu_look_since = clock::now();
            lock.unlock();
            auto const before = processor_time();
            auto seen = reader.read();
            auto const pause = std::max(what.every, (processor_time() - before) * gpu_pauses);
            lock.lock();
            gpu_look_since.reset();
            gpus = std::move(seen);
            tell();
            changed.wait_for(lock, pause, [this] { return stop; });
        }
    }
};

node_sampler::node_sampler(event_loop& loop, sampled_node what, ranks to_look_at, sink take)
    : loop_(loop), what_(std::move(what)), to_look_at_(std::move(to_look_at)), take_(std::move(take)) {
    if (what_.every > duration(0)) next_ = loop_.after(std::min(first_look, what_.every), [this] { start(); });
}

/// Without threads there are no samples, which is no reason to end a run.
void node_sampler::start() {
    next_ = 0;
    auto shared = std::make_shared<state>();
    if (!shared->event) return;
    auto const begin = [&shared, this](char const* what_for, void (state::*look)(sampled_node const&)) {
        {
            std::scoped_lock const lock(shared->mutex);
            ++shared->threads;
        }
        try {
            start_thread(what_for, [shared, look, what = what_] {
                try {
                    (shared.get()->*look)(what);
                } catch (std::exception const&) {  // out of memory: there are no more looks
                }
                std::scoped_lock const lock(shared->mutex);
                --shared->threads;
                shared->changed.notify_all();
            }).detach();
        } catch (error const&) {
            std::scoped_lock const lock(shared->mutex);
            --shared->threads;
        }
    };
    begin("for samples of ranks", &state::look_at_ranks);
    if (!what_.gpus.empty()) begin("for samples of GPUs", &state::look_at_gpus);
    state_ = std::move(shared);
    loop_.watch_readable(state_->event.get(), [this] { on_event(); });
    ask();
}

void node_sampler::ask() {
    next_ = loop_.after(what_.every, [this] { ask(); });
    std::vector<gpu_sample> silent;
    {
        std::unique_lock lock(state_->mutex);
        bool const waits = state_->gpu_look_since && clock::now() - *state_->gpu_look_since > gpu_patience;
        if (waits && !std::exchange(silent_gpus_told_, true)) silent = state_->gpu_names;
        if (!waits) silent_gpus_told_ = false;
        if (!state_->looks && clock::now() >= state_->rests_until) {
            lock.unlock();
            auto wanted = to_look_at_();
            lock.lock();
            if (!wanted.empty() || what_.itself) {
                state_->asked = std::move(wanted);
                state_->looks = true;
                state_->changed.notify_all();
            }
        }
    }
    if (silent.empty()) return;
    node_sample part;
    part.gpus = std::move(silent);
    take_(part);
}

void node_sampler::on_event() {
    std::uint64_t count = 0;
    [[maybe_unused]] auto const n = ::read(state_->event.get(), &count, sizeof count);
    node_sample seen;
    {
        std::scoped_lock const lock(state_->mutex);
        if (auto node = std::exchange(state_->node, std::nullopt)) seen = std::move(*node);
        seen.gpus = std::exchange(state_->gpus, {});
    }
    if (seen != node_sample()) take_(seen);
}

node_sampler::~node_sampler() {
    if (next_ != 0) loop_.cancel(next_);
    if (!state_) return;
    loop_.unwatch(state_->event.get());
    std::unique_lock lock(state_->mutex);
    state_->stop = true;
    state_->changed.notify_all();
    state_->changed.wait_for(lock, patience_at_end, [this] { return state_->threads == 0; });
}

}  // namespace muster
