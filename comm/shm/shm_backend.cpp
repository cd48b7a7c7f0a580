#include "comm/shm/shm_backend.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <map>
#include <mutex>

#include "base/log.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/world_record.hpp"
#include "comm/mpi/mpi_backend.hpp"
#include "comm/shm/co_progress.hpp"
#include "comm/shm/remote_memory.hpp"
#include "comm/shm/shared_buffers.hpp"
#include "comm/shm/shm_operation.hpp"
#include "comm/shm/shm_rendezvous.hpp"
#include "comm/shm/shm_world.hpp"
#include "pmix/client/client.hpp"

namespace muster {

namespace {

using namespace shm;

/// "job#2" for the third communicator of all ranks that this process makes: those of the same number belong together.
std::string numbered(std::string const& name) {
    static std::mutex guard;
    static std::map<std::string, std::uint64_t> made;
    std::scoped_lock const lock(guard);
    return fmt::format("{}#{}", name, made[name]++);
}

std::uint64_t hash_of(std::string_view text) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (char const c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
}

/// What a meeting is called: equal on its ranks, different for all others of this machine.
std::string key_of(std::string const& name) {
    return fmt::format("muster-shm-{}-{:016x}", ::geteuid(), hash_of(name));
}

template <typename Bits>
bool share_a_bit(Bits const& a, Bits const& b) noexcept {
    for (std::size_t i = 0; i < a.size(); ++i)
        if ((a[i] & b[i]) != 0) return true;
    return false;
}

/// Whether this rank may read every other one's memory, and why not.
std::string probe(world const& all) {
    for (int rank = 0; rank < all.size; ++rank) {
        std::uint64_t seen = 0;
        int const code =
            read_memory(all.processes[static_cast<std::size_t>(rank)].pid, &seen, all.of(rank).here().token_address, sizeof seen);
        if (code != 0) return why_no_memory_access(code);
        if (seen != token) return fmt::format("the memory of rank {} is not where it says: another process namespace?", rank);
    }
    return {};
}

/// A buffer of this process to try mapping on; none where there can be no more files.
shared_place token_place() {
    try {
        static comm_buffer const probed = allocate_shared(sizeof token);
        return place_of(probed.data(), sizeof token);
    } catch (error const& problem) {
        spdlog::debug("shm: {}", problem.what());
        return {};
    }
}

/// Whether this rank may map what every other one shares.
bool probe_mapping(world& all) {
    for (int rank = 0; rank < all.size; ++rank) {
        auto const at = static_cast<std::size_t>(rank);
        shared_place const& place = all.of(rank).here().token_place;
        int code = 0;
        if (place.buffer == 0 || all.mapped[at].find(all.processes[at].pid, place, sizeof token, code) == nullptr) return false;
    }
    return true;
}

world meet(std::string const& name, identity const& who, comm_options const& options) {
    permit_memory_access();
    geometry sizes;
    sizes.ranks = static_cast<std::size_t>(who.world_size);
    meeting with({key_of(name), describe_world(who, options), who.host, options.deadline, sizes.total_bytes()});
    world made = make_world(std::make_shared<shared_memory>(with.memory_file(), sizes.total_bytes()), sizes, who.rank);
    divide(made);
    static std::uint64_t const probed = token;
    made.own().construct();
    station& here = made.own().here();
    here.who = this_process();
    here.token_address = reinterpret_cast<std::uintptr_t>(&probed);
    here.token_place = token_place();
    with.agree(true);
    for (int rank = 0; rank < made.size; ++rank) {
        auto const at = static_cast<std::size_t>(rank);
        made.processes[at] = made.of(rank).here().who;
        made.hosts[at] = with.records()[at].host;
    }
    auto const& mine = with.records()[static_cast<std::size_t>(who.rank)].processors;
    for (auto const& record : with.records())
        if (record.rank != who.rank && share_a_bit(record.processors, mine)) made.beside.push_back(record.rank);
    made.crowded = is_crowded(with.records(), made.hosts[static_cast<std::size_t>(who.rank)]);
    std::string const refusal = probe(made);
    made.direct = with.agree(refusal.empty());
    made.mappable = with.agree(probe_mapping(made));
    spdlog::debug("shm: {} ranks{}, shared buffers {}, other large reductions and broadcasts {}{}", made.size,
                  made.crowded ? " on fewer processors" : "", made.mappable ? "in place" : "as others",
                  made.direct ? "from memory to memory" : "through shared memory: ",
                  made.direct       ? std::string{}
                  : refusal.empty() ? std::string("another rank was refused")
                                    : refusal);
    return made;
}

/// Polls without a step forward after which the communicators beside this one are moved forward.
constexpr unsigned polls_before_others = 64;

/// About 10 us.
constexpr unsigned looks_while_lingering = 200;

void relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/// Whoever yields falls behind everything else that wants the processor, if something does; whoever slept is let run soon. So
/// after a few yields, enough where only ranks share it, waiting is done in naps, which grow.
constexpr unsigned yields_before_naps = 16;
constexpr unsigned naps_of_a_length = 64;
constexpr long shortest_nap_ns = 10'000, long_nap_ns = 160'000, longest_nap_ns = 1'280'000;

/// A rank with a processor of its own gives it up for good only after some 10 ms: a nap then is below a hundredth of the wait.
constexpr unsigned yields_alone = 20'000;

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

/// The launcher's server hears from ranks through their MPI, which tells it that they met; these do without one, so they say it
/// themselves, once. Left at once: PMIx has room for one client in a process, and an MPI may come later.
void tell_the_launcher(identity const& who) {
    if (who.from != identity::source::muster && who.from != identity::source::pmix) return;
    if (running_mpi_world_size() != 0) return;
    static std::once_flag told;
    std::call_once(told, [] {
        try {
            pmix::client const hello(duration{10});
        } catch (error const& problem) {
            spdlog::debug("shm: the launcher is not told that this rank is here: {}", problem.what());
        }
    });
}

class shm_backend final : public collective_backend, private neighbour {
  public:
    shm_backend(std::string name, identity who, comm_options const& options)
        : name_(std::move(name)), who_(std::move(who)), options_(options), all_(meet(name_, who_, options_)) {}

    ~shm_backend() override {
        leave();
        auto& state = all_.own().here().state;
        if (state.load(std::memory_order_relaxed) == standing::member) state.store(standing::left, std::memory_order_release);
    }

    std::vector<std::string> const& hosts() const noexcept override { return all_.hosts; }
    bool crowded() const noexcept override { return all_.crowded; }
    void const* native() const noexcept override { return nullptr; }
    comm_buffer allocate(std::size_t bytes) override { return allocate_shared(bytes); }

    void give_way(bool weary) noexcept override {
        if (working_) return;
        unsigned const patience = all_.crowded ? yields_before_naps : yields_alone;
        if (weary) yields_ = std::max(yields_, patience);  // on a busy machine so many yields take minutes
        if (++yields_ <= patience)
            ::sched_yield();
        else
            nap(yields_ - patience);
    }

    ticket start(collective const& what) override {
        use const held(*this);
        ticket const which = take_slot();
        slot& next = *slots_[which - 1];
        next.work.begin(what);
        if (active_.empty()) {
            try {
                if (next.work.advance(all_)) {
                    free_.push_back(which);
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
            slot& asked = *slots_[which - 1];
            if (asked.where == slot::state::active) advance();
            note_progress();
            if (asked.where == slot::state::active && all_.crowded && yields_ < yields_before_naps + naps_of_a_length)
                linger(asked);
            if (asked.where == slot::state::failed) {
                asked.where = slot::state::lost;
                std::rethrow_exception(asked.failure);
            }
            if (asked.where == slot::state::finished) {
                idle_polls_ = yields_ = 0;
                free_.push_back(which);
                return true;
            }
            working_ = !active_.empty() && slots_[active_.front() - 1]->work.works();
        }
        if (++idle_polls_ % polls_before_others == 0) drive_others();
        return false;
    }

    void progress() override {
        use const held(*this);
        advance();
    }

    /// The others are told, if they ask why this rank does not go on. The slot is never used again.
    void abandon(ticket which) noexcept override {
        use const held(*this);
        slot& lost = *slots_[which - 1];
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
        task work;
    };

    ticket take_slot() {
        if (free_.empty()) {
            slots_.push_back(std::make_unique<slot>());
            free_.reserve(slots_.size());
            return static_cast<ticket>(slots_.size());
        }
        ticket const which = free_.back();
        free_.pop_back();
        slots_[which - 1]->where = slot::state::active;
        return which;
    }

    void drive() noexcept override { advance(); }

    /// Failures are kept for done().
    void advance() noexcept {
        while (!active_.empty()) {
            slot& head = *slots_[active_.front() - 1];
            try {
                if (!head.work.advance(all_)) return;
                head.where = slot::state::finished;
                active_.pop_front();
            } catch (...) {
                auto const failure = std::current_exception();
                fail(failure);
                for (ticket const each : active_) {
                    slots_[each - 1]->where = slot::state::failed;
                    slots_[each - 1]->failure = failure;
                }
                active_.clear();
            }
        }
    }

    /// A wait begins anew with every step forward.
    void note_progress() noexcept {
        std::uint64_t const now = active_.empty() ? 0 : slots_[active_.front() - 1]->work.steps();
        if (now != steps_) yields_ = 0;
        steps_ = now;
    }

    /// Whoever waits gives its processor away, which is dear, to let another rank come to where it is. Where all that run beside
    /// it are there already that would only bring the processor back: then it stays a little while.
    void linger(slot const& asked) noexcept {
        for (unsigned looks = 0; looks < looks_while_lingering && asked.where == slot::state::active && !active_.empty();
             ++looks) {
            task const& head = slots_[active_.front() - 1]->work;
            for (int const rank : all_.beside)
                if (head.waits_for(all_, rank)) return;
            relax();
            advance();
        }
    }

    std::vector<late_rank> whom_to_blame(ticket which) const noexcept try {
        if (slots_[which - 1]->where != slot::state::active || active_.empty()) return {};
        task const& head = slots_[active_.front() - 1]->work;
        return blame(all_, head.missing(all_), head.sequence());
    } catch (...) {
        return {};  // no memory left for words
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
    }

    std::string name_;
    identity who_;
    comm_options options_;
    world all_;
    unsigned subsets_ = 0;
    unsigned idle_polls_ = 0;
    unsigned yields_ = 0;                       // since something went on
    std::uint64_t steps_ = 0;                   // of the first active, at the last poll
    bool working_ = false;                      // there is more to do than was done at the last poll
    std::vector<std::unique_ptr<slot>> slots_;  // ticket t is slot t-1
    std::vector<ticket> free_;
    std::deque<ticket> active_;  // in the order of their start; only the first goes on
};

}  // namespace

std::optional<std::string> shm_unavailable(identity const& who, comm_options const& options) {
    if (who.local_size != who.world_size)
        return fmt::format("it serves the ranks of one node, and {} of {} are on this one", who.local_size, who.world_size);
    if (options.backend.empty() && who.world_size == 1) return "one rank needs no other";
    // The program's own MPI may know more than the variables do: the mpi backend tells what is wrong then.
    if (int const size = running_mpi_world_size(); options.backend.empty() && size != 0 && size != who.world_size)
        return fmt::format("MPI is initialised and its world has {} ranks", size);
    // Of a bare PMI-1 it is not known which ranks are on this node, nor what the job is called: another one of this user here may
    // have the same name.
    if (options.backend.empty() && (who.from == identity::source::pmi || who.nspace == to_string(who.from)))
        return "no variable tells this job's name and which ranks are on this node; where all are, and it is the only such job "
               "there, ask for shm by name";
    return std::nullopt;
}

std::unique_ptr<collective_backend> make_shm_backend(identity const& who, comm_options const& options) {
    tell_the_launcher(who);
    return std::make_unique<shm_backend>(numbered(who.nspace), who, options);
}

}  // namespace muster
