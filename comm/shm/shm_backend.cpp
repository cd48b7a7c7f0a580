#include "comm/shm/shm_backend.hpp"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <mutex>
#include <vector>

#include "base/log.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/process_set.hpp"
#include "comm/backend/processes/co_progress.hpp"
#include "comm/backend/slot_table.hpp"
#include "comm/shm/memory/shared_buffers.hpp"
#include "comm/shm/shm_operation.hpp"
#include "comm/shm/shm_world.hpp"
#include "pmix/client/client.hpp"

namespace muster::shm {

class wait_pace {
  public:
    /// Starts anew after every step forward.
    void restart(station& own) noexcept;

    /// Call it after a poll that found nothing new, on a rank with a processor to itself. `waited_long`: on a busy machine so many yields would take
    /// minutes.
    void give_way(bool waited_long) noexcept;
    /// The same for ranks that share processors: after some yields the rank sleeps until another one rings. With yields alone it gets the processor back
    /// at once if the kernel divides it among sessions and each rank has its own session, or late if much else runs.
    void sleep(station& own) noexcept;
    /// Returns whether it has not slept yet, or only just.
    bool is_short() const noexcept { return sleeps_ < brief_sleeps; }

  private:
    static constexpr unsigned brief_sleeps = 64;

    unsigned yields_ = 0, sleeps_ = 0;
    std::chrono::steady_clock::time_point begin_;  ///< of the yields, if ranks share processors
    bool armed_ = false;                           ///< others see that it is about to sleep
    std::uint32_t heard_ = 0;
};

/// Wakes the sleeping ranks, after a step that they may wait for.
void ring(world const& all) noexcept;

namespace {

/// A rank with a processor to itself gives it up only after some 10 ms: a nap is then less than a hundredth of the wait.
constexpr unsigned yields_alone = 20'000;
/// If ranks share processors and all that run on one of them sleep, it falls idle, and waking a rank takes up to 50 us if a hypervisor has to do it. So a
/// rank goes on yielding for as long as another rank's step usually takes: a few times if other programs get the processor at each yield, but up to
/// most_yields times if nobody gets it.
constexpr unsigned fewest_yields = 4, most_yields = 128;
constexpr std::chrono::microseconds yields_for{300};
constexpr unsigned naps_of_a_length = 64;
constexpr long shortest_nap_ns = 10'000, long_nap_ns = 160'000, longest_nap_ns = 1'280'000;

void nap(unsigned number) noexcept {
    long length = shortest_nap_ns;
    for (unsigned i = naps_of_a_length; i <= number && length < longest_nap_ns; i += naps_of_a_length) length *= 2;
    timespec const time{0, length};
    if (length >= long_nap_ns) {
        ::nanosleep(&time, nullptr);
        return;
    }
    // Timers must be exact to 1 us: by default the kernel may add 50 us.
    int const slack = ::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    ::prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
    ::nanosleep(&time, nullptr);
    if (slack > 0) ::prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
}

}  // namespace

void wait_pace::restart(station& own) noexcept {
    yields_ = sleeps_ = 0;
    if (!armed_) return;
    armed_ = false;
    own.asleep.store(0, std::memory_order_relaxed);
}

void wait_pace::give_way(bool waited_long) noexcept {
    if (waited_long) yields_ = std::max(yields_, yields_alone);
    if (++yields_ <= yields_alone)
        ::sched_yield();
    else
        nap(yields_ - yields_alone);
}

/// First announces that it sleeps, and polls once more: a rank that has gone on meanwhile has not rung. Does not sleep long: other communicators of
/// this process wait meanwhile, and a rank that dies does not ring.
void wait_pace::sleep(station& own) noexcept {
    auto const now = std::chrono::steady_clock::now();
    if (yields_ == 0) begin_ = now;
    if (++yields_ <= fewest_yields || (yields_ <= most_yields && now - begin_ < yields_for)) {
        ::sched_yield();
        return;
    }
    if (!armed_) {
        heard_ = own.bell.load(std::memory_order_relaxed);
        own.asleep.store(1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        armed_ = true;
        return;
    }
    timespec const most{0, longest_nap_ns};
    ::syscall(SYS_futex, &own.bell, FUTEX_WAIT, heard_, &most, nullptr, 0);
    own.asleep.store(0, std::memory_order_relaxed);
    armed_ = false;
    ++sleeps_;
}

void ring(world const& all) noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    for (int rank = 0; rank < all.size; ++rank) {
        if (rank == all.rank) continue;
        station& theirs = all.of(rank).here();
        if (theirs.asleep.load(std::memory_order_relaxed) == 0) continue;
        theirs.bell.fetch_add(1, std::memory_order_relaxed);
        ::syscall(SYS_futex, &theirs.bell, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }
}

}  // namespace muster::shm

namespace muster {

namespace {

using namespace shm;

/// A rank polls this often without a step forward; then the other communicators of this process are moved forward.
constexpr unsigned polls_before_others = 64;

/// They take about a microsecond, less than yielding the processor to another rank and getting it back; with 3, 4 and 8 ranks on 2 cores more polls
/// gain nothing.
constexpr unsigned brief_polls = 16;

/// A rank's MPI usually reports to the launcher's server that the rank has come up. These ranks need no MPI, so they report it
/// themselves, once, and leave at once: PMIx allows one client in a process, and an MPI may come later.
void tell_the_launcher(identity const& who) {
    if (who.from != identity::source::muster && who.from != identity::source::pmix) return;
    static std::once_flag told;
    std::call_once(told, [] {
        try {
            pmix::client const hello(duration{10});
        } catch (error const& problem) {
            spdlog::debug("shm: the launcher is not told that this rank is here: {}", problem.what());
        }
    });
}

class shm_backend final : public collective_backend, private co_progress {
  public:
    shm_backend(std::string name, identity who, comm_options const& options)
        : name_(std::move(name)), who_(std::move(who)), options_(options), all_(join_world(name_, who_, options_)) {
        enter();
    }

    ~shm_backend() override {
        leave();
        auto& state = all_.own().here().state;
        if (state.load(std::memory_order_relaxed) == standing::member) state.store(standing::left, std::memory_order_release);
    }

    std::vector<std::string> const& hosts() const noexcept override { return all_.hosts; }
    bool crowded() const noexcept override { return all_.crowded; }
    std::string about() const override { return all_.distance; }
    void const* native() const noexcept override { return nullptr; }
    comm_buffer allocate(std::size_t bytes) override { return allocate_shared(bytes); }

    void give_way(bool waited_long) noexcept override {
        if (working_) return;
        if (all_.crowded)
            pace_.sleep(all_.own().here());
        else
            pace_.give_way(waited_long);
    }

    ticket start(collective const& what) override {
        use const held(*this);
        ticket const which = take_slot();
        slot& next = slots_.at(which);
        next.work.begin(what);
        if (active_.empty()) {
            try {
                if (go_on(next.work)) {
                    slots_.put_back(which);
                    return 0;
                }
            } catch (...) {
                fail(std::current_exception());
                throw;
            }
        }
        active_.push_back(which);
        return which;
    }

    bool done(ticket which) override {
        {
            use const held(*this);
            slot& asked = slots_.at(which);
            if (asked.where == slot::state::active) advance();
            note_progress();
            if (asked.where == slot::state::active && all_.crowded && pace_.is_short()) poll_briefly(asked);
            if (asked.where == slot::state::failed) {
                asked.where = slot::state::lost;
                std::rethrow_exception(asked.failure);
            }
            if (asked.where == slot::state::finished) {
                idle_polls_ = 0;
                pace_.restart(all_.own().here());
                slots_.put_back(which);
                return true;
            }
            working_ = !active_.empty() && slots_.at(active_.front()).work.works();
        }
        if (++idle_polls_ % polls_before_others == 0) drive_others();
        return false;
    }

    void progress() override {
        use const held(*this);
        advance();
    }

    /// Tells the other ranks that wait for this one. The slot is never used again.
    void abandon(ticket which) noexcept override {
        use const held(*this);
        slot& lost = slots_.at(which);
        if (lost.where == slot::state::active) {
            auto const late = whom_to_blame(which);
            tell_failure(late.empty() ? all_.rank : late.front().rank);
        }
        lost.where = slot::state::lost;
        std::erase(active_, which);
    }

    std::vector<late_rank> late_ranks(ticket which) noexcept override {
        use const held(*this);
        return whom_to_blame(which);
    }

    int awaited(ticket which) noexcept override {
        use const held(*this);
        if (slots_.at(which).where != slot::state::active || active_.empty()) return -1;
        shm_operation const& head = slots_.at(active_.front()).work;
        int only = -1;
        for (int rank = 0; rank < all_.size; ++rank)
            if (rank != all_.rank && head.waits_for(all_, rank)) {
                if (only >= 0) return -1;
                only = rank;
            }
        return only;
    }

    std::unique_ptr<collective_backend> subset(std::span<int const> ranks) override {
        auto const number = subsets_++;
        auto const me = std::find(ranks.begin(), ranks.end(), who_.rank);
        if (me == ranks.end()) return nullptr;
        identity part = who_;
        part.rank = part.local_rank = static_cast<int>(me - ranks.begin());
        part.world_size = part.local_size = static_cast<int>(ranks.size());
        return std::make_unique<shm_backend>(fmt::format("{}/{}", name_, number), part, options_);
    }

  private:
    struct slot {
        enum class state { active, finished, failed, lost };
        state where = state::active;
        std::exception_ptr failure;
        shm_operation work;
    };

    ticket take_slot() {
        ticket const which = slots_.take();
        slots_.at(which).where = slot::state::active;
        return which;
    }

    void drive() noexcept override { advance(); }

    bool go_on(shm_operation& work) {
        if (!all_.crowded) return work.advance(all_);
        auto const before = work.steps();
        bool const ended = work.advance(all_);
        if (ended || work.steps() != before) ring(all_);
        return ended;
    }

    /// Keeps failures for done().
    void advance() noexcept {
        while (!active_.empty()) {
            slot& head = slots_.at(active_.front());
            try {
                if (!go_on(head.work)) return;
                head.where = slot::state::finished;
                active_.pop_front();
            } catch (...) {
                auto const failure = std::current_exception();
                fail(failure);
                for (ticket const each : active_) {
                    slots_.at(each).where = slot::state::failed;
                    slots_.at(each).failure = failure;
                }
                active_.clear();
            }
        }
    }

    /// Restarts the pace of waiting after every step forward.
    void note_progress() noexcept {
        std::uint64_t const now = active_.empty() ? 0 : slots_.at(active_.front()).work.steps();
        if (now != steps_) pace_.restart(all_.own().here());
        steps_ = now;
    }

    /// Yielding the processor to another rank takes long. If all ranks that were last seen on this processor have already come as far,
    /// it would only bring the processor back: so this rank polls a little longer first.
    void poll_briefly(slot const& asked) noexcept {
        int const processor = ::sched_getcpu();
        for (unsigned polls = 0; polls < brief_polls && asked.where == slot::state::active && !active_.empty(); ++polls) {
            shm_operation const& head = slots_.at(active_.front()).work;
            for (int const rank : all_.beside)
                if (all_.of(rank).here().processor.load(std::memory_order_relaxed) == processor && head.waits_for(all_, rank))
                    return;
            relax();
            advance();
        }
    }

    std::vector<late_rank> whom_to_blame(ticket which) noexcept try {
        if (slots_.at(which).where != slot::state::active || active_.empty()) return {};
        shm_operation const& head = slots_.at(active_.front()).work;
        return blame(all_, head.missing(all_), head.sequence());
    } catch (...) {
        return {};  // out of memory
    }

    void fail(std::exception_ptr const& failure) noexcept {
        int culprit = all_.rank;
        try {
            std::rethrow_exception(failure);
        } catch (comm_error const& problem) {
            if (!problem.culprits().empty()) culprit = problem.culprits().front();
        } catch (...) {  // the fault is this rank's own
        }
        tell_failure(culprit);
    }

    void tell_failure(int culprit) noexcept {
        station& here = all_.own().here();
        if (here.state.load(std::memory_order_relaxed) == standing::failed) return;
        here.culprit.store(culprit, std::memory_order_relaxed);
        here.state.store(standing::failed, std::memory_order_release);
        ring(all_);
    }

    std::string name_;
    identity who_;
    comm_options options_;
    world all_;
    unsigned subsets_ = 0;
    unsigned idle_polls_ = 0;
    wait_pace pace_;
    std::uint64_t steps_ = 0;  // of the first active operation, at the last poll
    bool working_ = false;     // the last poll left work to do
    detail::slot_table<slot> slots_;
    std::deque<ticket> active_;  // in the order of their start; only the first advances
};

}  // namespace

std::optional<std::string> shm_unavailable(identity const& who, comm_options const& options, int mpi_world_size) {
    if (who.local_size != who.world_size)
        return fmt::format("it serves the ranks of one node, and {} of {} are on this one", who.local_size, who.world_size);
    if (options.backend.empty() && who.world_size == 1) return "one rank needs no other";
    // The program's own MPI may know more than the variables do: the mpi backend reports what is wrong then.
    if (options.backend.empty() && options.members.empty() && mpi_world_size != 0 && mpi_world_size != who.world_size)
        return fmt::format("MPI is initialised and its world has {} ranks", mpi_world_size);
    // With a bare PMI-1 nothing says which ranks are on this node, nor what the job is called: another job of this user here may
    // have the same name.
    if (options.backend.empty() && (who.from == identity::source::pmi || who.nspace == to_string(who.from)))
        return "no variable tells this job's name and which ranks are on this node; where all are, and it is the only such job "
               "there, ask for shm by name";
    return std::nullopt;
}

std::unique_ptr<collective_backend> make_shm_backend(identity const& who, comm_options const& options, int mpi_world_size) {
    if (mpi_world_size == 0) tell_the_launcher(who);
    return std::make_unique<shm_backend>(numbered_world(who.nspace), who, options);
}

}  // namespace muster
