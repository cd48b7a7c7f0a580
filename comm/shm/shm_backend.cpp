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
    /// A wait begins anew with every step forward.
    void restart(station& own) noexcept;

    /// To be called after a poll in vain, by a rank with a processor of its own. `waited_long`: on a busy machine so many yields would take minutes.
    void give_way(bool waited_long) noexcept;
    /// The same where ranks share processors: after some yields the rank sleeps until another one rings. Who only yields gets the processor back at once
    /// where kernels share it among sessions and each rank has its own, or late where much else runs.
    void sleep(station& own) noexcept;
    /// Whether it has not slept yet, or only just.
    bool is_short() const noexcept { return sleeps_ < brief_sleeps; }

  private:
    static constexpr unsigned brief_sleeps = 64;

    unsigned yields_ = 0, sleeps_ = 0;
    std::chrono::steady_clock::time_point begin_;  ///< of the yields, where ranks share processors
    bool armed_ = false;                           ///< others know that it is about to sleep
    std::uint32_t heard_ = 0;
};

/// Wakes the other ranks that sleep, after a step that they may wait for.
void ring(world const& all) noexcept;

namespace {

/// A rank with a processor of its own gives it up for good only after some 10 ms: a nap then is below a hundredth of the wait.
constexpr unsigned yields_alone = 20'000;
/// Where ranks share processors. A rank whose processor falls idle because all that run there sleep is woken late: up to 50 us where a hypervisor has to.
/// So it goes on yielding for as long as another rank's step mostly takes: a few times where other programs get the processor at each yield, not often where
/// nobody gets it.
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
    // As exact as that: by default the kernel may add 50 us.
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

/// First it says so, and polls once more: a rank that has gone on meanwhile has not rung. Other communicators of this process wait while it sleeps, and
/// a rank that dies does not ring: so not for long.
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

/// Polls without a step forward after which the communicators beside this one are moved forward.
constexpr unsigned polls_before_others = 64;

/// About a microsecond, less than it takes to give the processor to another rank and back; with 3, 4 and 8 ranks on 2 cores more polls gain nothing.
constexpr unsigned brief_polls = 16;

/// The launcher's server is told by a rank's MPI that the rank has come up. These ranks need no MPI, so they tell it themselves,
/// once, and leave at once: PMIx allows one client in a process, and an MPI may come later.
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

    /// Other ranks that wait for this one learn of it. The slot is never used again.
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

    /// Failures are kept for done().
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

    /// A wait begins anew with every step forward.
    void note_progress() noexcept {
        std::uint64_t const now = active_.empty() ? 0 : slots_.at(active_.front()).work.steps();
        if (now != steps_) pace_.restart(all_.own().here());
        steps_ = now;
    }

    /// A waiting rank gives its processor away, which is dear, so that another rank can come as far. Where all ranks that were last seen
    /// on it are there already that would only bring the processor back: then it polls a little longer.
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
        } catch (...) {  // its own fault
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
    std::uint64_t steps_ = 0;  // of the first active, at the last poll
    bool working_ = false;     // there is more to do than was done at the last poll
    detail::slot_table<slot> slots_;
    std::deque<ticket> active_;  // in the order of their start; only the first goes on
};

}  // namespace

std::optional<std::string> shm_unavailable(identity const& who, comm_options const& options, int mpi_world_size) {
    if (who.local_size != who.world_size)
        return fmt::format("it serves the ranks of one node, and {} of {} are on this one", who.local_size, who.world_size);
    if (options.backend.empty() && who.world_size == 1) return "one rank needs no other";
    // The program's own MPI may know more than the variables do: the mpi backend reports what is wrong then.
    if (options.backend.empty() && options.members.empty() && mpi_world_size != 0 && mpi_world_size != who.world_size)
        return fmt::format("MPI is initialised and its world has {} ranks", mpi_world_size);
    // Of a bare PMI-1 it is not known which ranks are on this node, nor what the job is called: another one of this user here may
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
