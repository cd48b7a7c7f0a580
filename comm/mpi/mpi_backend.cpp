#include "comm/mpi/mpi_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <vector>

#include "base/log.hpp"
#include "comm/backend/keep_forever.hpp"
#include "comm/backend/late_ranks.hpp"
#include "comm/backend/slot_table.hpp"
#include "comm/mpi/mpi_call.hpp"
#include "comm/mpi/mpi_direct.hpp"
#include "comm/mpi/mpi_messages.hpp"
#include "comm/mpi/mpi_native.hpp"
#include "comm/mpi/mpi_runtime.hpp"

namespace muster::detail {

/// Sends these to all ranks that are not dead, and waits for nothing (the buffer stays allocated until the process ends). Ignores
/// errors.
void send_blame(direct_world const& world, std::vector<late_rank> const& late) noexcept;

void send_blame(direct_world const& world, std::vector<late_rank> const& late) noexcept try {
    int const tag = blame_tag(world.largest_tag);
    if (tag < 0 || late.empty()) return;
    auto text = std::make_unique<std::string>(write_blame(late));
    for (int rank = 0; rank < world.size; ++rank) {
        // The dead get no message; a stopped rank gets one, in case it goes on.
        auto const is_dead = [rank](late_rank const& each) { return each.dead && each.rank == rank; };
        if (rank == world.rank || std::any_of(late.begin(), late.end(), is_dead)) continue;
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Isend(text->data(), static_cast<int>(text->size()), MPI_BYTE, rank, tag, world.comm, &request);
        if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
    keep_forever(std::move(text));  // nothing waits for these messages to have been sent
} catch (...) {                     // out of memory: the others find it out by themselves
}

/// Tells all other ranks that everything that this one sent has arrived. Waits for nothing. Ignores errors.
void tell_through(direct_world const& world) noexcept {
    int const tag = through_tag(world.largest_tag);
    if (tag < 0) return;
    for (int k = 1; k < world.size; ++k) {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Isend(nullptr, 0, MPI_BYTE, (world.rank + k) % world.size, tag, world.comm, &request);
        if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
}

/// Returns the blame of the first rank whose message has arrived; empty if there is no message.
std::vector<late_rank> receive_blame(direct_world const& world) {
    int const tag = blame_tag(world.largest_tag);
    int found = 0, bytes = 0;
    MPI_Status status;
    if (tag < 0) return {};
    check(MPI_Iprobe(MPI_ANY_SOURCE, tag, world.comm, &found, &status), "MPI_Iprobe");
    if (found == 0) return {};
    check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    std::string text(static_cast<std::size_t>(bytes), '\0');
    check(MPI_Recv(text.data(), bytes, MPI_BYTE, status.MPI_SOURCE, tag, world.comm, MPI_STATUS_IGNORE), "MPI_Recv");
    auto const& host = world.hosts->at(static_cast<std::size_t>(status.MPI_SOURCE));
    return read_blame(text, fmt::format("rank {} on {}", status.MPI_SOURCE, host), world.size);
}

}  // namespace muster::detail

namespace muster {

namespace {

using namespace detail;
using clock = std::chrono::steady_clock;

/// A rank that gives up operations tries for this long to get their memory back from MPI, for all operations of a communicator
/// together: if ranks do not come, and if all are there and only disagree.
constexpr std::chrono::milliseconds release_time{500};
constexpr std::chrono::milliseconds release_time_of_all{3000};

constexpr int polls_of_short = 8;

/// One collective under way.
struct slot {
    enum class kind { idle, direct, pairwise, native, abandoned };
    kind way = kind::idle;
    bool finished = false;
    bool uses_memory = true;
    bool of_all = true;  ///< otherwise of two ranks
    std::exception_ptr failure;
    direct_allreduce direct;
    mpi_pairwise pairwise;
    mpi_native native;

    bool advance() {
        switch (way) {
            case kind::direct: return direct.advance();
            case kind::pairwise: return pairwise.advance();
            default: return native.advance();
        }
    }
    void withdraw() noexcept {
        if (way == kind::direct) direct.abandon();
        if (way == kind::pairwise) pairwise.abandon();
    }
    bool is_short() const noexcept { return way == kind::direct && direct.is_short(); }
    bool released() noexcept { return native.released() && direct.released() && pairwise.released(); }
    void mark_pending(std::vector<bool>& ranks) noexcept {
        if (way == kind::direct) direct.mark_pending(ranks);
        if (way == kind::pairwise) pairwise.mark_pending(ranks);
    }
};

bool needs_nothing(collective const& what) noexcept {
    using kind = collective::kind;
    if (what.what == kind::barrier) return false;
    // A share or a rank's part may be empty while those of others are not.
    if (what.what == kind::reducescatter) return what.in.count == 0;
    if (what.what == kind::alltoall || what.what == kind::sendrecv) return what.in.count == 0 && what.out.count == 0;
    return what.out.count == 0;
}

class mpi_backend final : public collective_backend {
  public:
    mpi_backend(std::shared_ptr<mpi_runtime> runtime, mpi_world world, int rank, comm_options const& options)
        : runtime_(std::move(runtime)), met_(std::move(world)), native_(met_.comm.get()), options_(options) {
        processes_ = processes_of(met_.ranks);
        hosts_ = hosts_of(met_.ranks);
        auto const size = static_cast<int>(met_.ranks.size());
        world_ = {met_.comm.get(), rank, size, 32767, &hosts_};  // 32767 is the least that MPI may have
        int* upper = nullptr;
        int found = 0;
        check(MPI_Comm_get_attr(met_.comm.get(), MPI_TAG_UB, &upper, &found), "MPI_Comm_get_attr");
        if (found != 0) world_.largest_tag = *upper;
        // Small tags have no room for the hash that shows mismatched tensors (make_tag).
        direct_ = size <= options.direct_ranks && world_.largest_tag >= 1 << 24;
        sendrecvs_.assign(met_.ranks.size(), 0);
    }

    ~mpi_backend() override {
        bool const unwinding = std::uncaught_exceptions() > 0;
        if (!unwinding && !stuck_ && !lost_ && unwanted_have_come() && barriers_are_through()) return;
        // MPI may still use all this memory, and other ranks may never reach the end of a collective.
        runtime_->leave_unfinalised();
        keep_forever(std::move(unwanted_));
        keep_forever(std::move(met_.comm));
        keep_forever(std::move(slots_));
    }

    std::vector<std::string> const& hosts() const noexcept override { return hosts_; }
    bool crowded() const noexcept override { return met_.crowded; }
    void const* native() const noexcept override { return &native_; }

    ticket start(collective const& what) override {
        if (needs_nothing(what)) {
            static_cast<void>(next_number(what));  // ranks that disagree about it must not take the next collective for this one
            return 0;
        }
        ticket const which = take_slot();
        slot& next = slots_.at(which);
        try {
            start_in(next, what);
        } catch (...) {
            give_up(next);
            throw;
        }
        active_.push_back(which);
        return which;
    }

    bool done(ticket which) override {
        slot& asked = slots_.at(which);
        // A message takes a few polls of MPI; if nothing else is under way they are made here, without the overhead of a whole poll.
        int const polls = active_.size() == 1 && asked.is_short() ? polls_of_short : 1;
        for (int i = 0; i < polls && !asked.finished; ++i) advance_all();
        if (!asked.finished) return false;
        auto const failure = std::move(asked.failure);
        if (failure) {
            give_up_with_all(asked);
            std::rethrow_exception(failure);
        }
        asked.way = slot::kind::idle;
        slots_.put_back(which);
        evidence_.clear();  // a stopped rank has gone on
        return true;
    }

    void progress() override { advance_all(); }

    /// Gives up on `which`; of 0 it only tells the other ranks which ones late_ranks() found, for a backend built on this one.
    void abandon(ticket which) noexcept override {
        if (!evidence_.empty()) {
            if (!told_) send_blame(world_, evidence_);
            lost_ = told_ = true;
        }
        if (which == 0) return;
        std::erase(active_, which);
        give_up(slots_.at(which));
    }

    /// Returns the ranks that another rank gave up; else those whose process is gone or stopped; else those whose messages of
    /// `which` are missing, which only direct and pairwise collectives know.
    std::vector<late_rank> late_ranks(ticket which) noexcept override try {
        auto known = receive_blame(world_);
        bool const received = !known.empty();
        if (!received) known = lost_ranks(processes_, world_.rank);
        told_ = told_ || received;  // the rank that sent it told all
        evidence_ = known;
        return known.empty() ? silent_ranks(which) : known;
    } catch (...) {
        return {};
    }

    std::unique_ptr<collective_backend> subset(std::span<int const> ranks) override {
        auto const place = std::find(ranks.begin(), ranks.end(), world_.rank);
        if (place == ranks.end()) return nullptr;
        return std::make_unique<mpi_backend>(runtime_, rendezvous_of_some(*runtime_, met_, ranks, world_.rank, options_),
                                             static_cast<int>(place - ranks.begin()), options_);
    }

  private:
    ticket take_slot() {
        ticket const which = slots_.take();
        active_.reserve(slots_.size());  // so that nothing fails after the start
        return which;
    }

    /// Each pair of ranks counts its sendrecvs, since the others do not know of them.
    unsigned next_number(collective const& what) noexcept {
        return what.what == collective::kind::sendrecv ? sendrecvs_[static_cast<std::size_t>(what.root)]++ : sequence_++;
    }

    void start_in(slot& next, collective const& what) {
        using kind = collective::kind;
        next.finished = false;
        next.uses_memory = what.what != kind::barrier;
        next.of_all = what.what != kind::sendrecv;
        unsigned const number = next_number(what);
        if (what.what == kind::reducescatter || (what.what == kind::allreduce && direct_)) {
            next.way = slot::kind::direct;
            next.direct.start(world_, number, what);
        } else if (what.what == kind::alltoall || what.what == kind::sendrecv ||
                   (what.what == kind::allgather && !what.receive_counts.empty())) {
            next.way = slot::kind::pairwise;
            next.pairwise.start(world_, number, what);
        } else {
            next.way = slot::kind::native;
            next.native.start(world_, ops_, what);
        }
    }

    void advance_all() {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < active_.size(); ++i) {
            slot& current = slots_.at(active_[i]);
            try {
                current.finished = current.advance();
            } catch (...) {
                current.failure = std::current_exception();
                current.finished = true;
            }
            if (!current.finished) active_[kept++] = active_[i];
        }
        active_.resize(kept);
    }

    std::vector<late_rank> silent_ranks(ticket which) {
        std::vector<bool> pending(hosts_.size(), false);
        if (which != 0) slots_.at(which).mark_pending(pending);
        std::vector<late_rank> silent;
        for (std::size_t rank = 0; rank < pending.size(); ++rank) {
            if (!pending[rank]) continue;
            auto const& process = processes_[rank];
            auto const state = state_of(process);
            silent.push_back({static_cast<int>(rank), false,
                              state == process_state::unknown
                                  ? "nothing has come from it"
                                  : fmt::format("nothing has come from it, {}", describe(process, state))});
        }
        return silent;
    }

    /// Gives up on an operation; its slot is never used again. Tries, while the caller's memory is still there, to get it back
    /// from MPI: it cancels receives, and receives what others sent, as they do for this rank. If that fails, MPI must not be
    /// called any more once the memory is gone.
    void give_up(slot& lost, std::chrono::milliseconds patience = release_time) noexcept {
        if (!release_until_) release_until_ = clock::now() + patience;
        lost.withdraw();
        lost.way = slot::kind::abandoned;
        if (!lost.uses_memory) return;
        for (;;) {
            bool const received = receive_unwanted();
            bool const released = unwanted_have_come() && lost.released();
            if (released && !received && (!all_disagree_ || !active_.empty() || all_are_through())) return;
            if (clock::now() <= *release_until_) continue;
            if (lost.released()) return;
            break;
        }
        stuck_ = true;
    }

    /// Gives up when all ranks are there and see that they disagree.
    void give_up_with_all(slot& lost) noexcept {
        all_disagree_ = lost.of_all;
        give_up(lost, release_time_of_all);
    }

    /// Messages of ranks that give up as well may still be on their way to this one, and only it can receive them. Each rank tells the
    /// others when all that it sent has arrived, and goes when all have told it the same.
    bool all_are_through() noexcept {
        if (!std::exchange(told_through_, true)) tell_through(world_);
        return through_ >= world_.size - 1 || through_tag(world_.largest_tag) < 0;
    }

    /// Returns whether barriers that were given up have ended, perhaps within a short wait.
    bool barriers_are_through() noexcept {
        auto const is_through = [](std::unique_ptr<slot> const& each) {
            return each->way != slot::kind::abandoned || each->uses_memory || each->released();
        };
        auto const until = clock::now() + release_time;
        while (!std::all_of(slots_.all().begin(), slots_.all().end(), is_through))
            if (clock::now() > until) return false;
        return true;
    }

    /// Starts to receive a message that nobody waits for any more, so that its sender gets its memory back; returns false if
    /// there is no such message. Does not wait: the rest of a large one never comes from a rank that is stopped or gone.
    bool receive_unwanted() noexcept {
        int found = 0, bytes = 0;
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Status status;
        if (MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, world_.comm, &found, &message, &status) != MPI_SUCCESS || found == 0)
            return false;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        if (status.MPI_TAG == through_tag(world_.largest_tag)) ++through_;
        unwanted next;
        next.memory.reset(new (std::nothrow) std::byte[static_cast<std::size_t>(bytes)]);
        if (!next.memory) return false;
        MPI_Imrecv(next.memory.get(), bytes, MPI_BYTE, &message, &next.request);
        unwanted_.push_back(std::move(next));
        return true;
    }

    /// Returns whether none of these messages is under way.
    bool unwanted_have_come() noexcept {
        std::erase_if(unwanted_, [](unwanted& each) {
            int ended = 0;
            return MPI_Test(&each.request, &ended, MPI_STATUS_IGNORE) != MPI_SUCCESS || ended != 0;
        });
        return unwanted_.empty();
    }

    std::shared_ptr<mpi_runtime> runtime_;  // outlives every handle below
    mpi_world met_;
    MPI_Comm native_;  // a copy; users may have its address
    comm_options options_;
    std::vector<process_name> processes_;
    std::vector<std::string> hosts_;
    direct_world world_;
    bool direct_ = false;
    unsigned sequence_ = 0;
    std::vector<unsigned> sendrecvs_;  // counts those with each rank
    std::vector<late_rank> evidence_;
    bool lost_ = false;  // operations were given up because of that evidence: finalising would wait for those ranks
    bool told_ = false;  // the others know of it
    std::optional<clock::time_point> release_until_;
    struct unwanted {
        std::unique_ptr<std::byte[]> memory;
        MPI_Request request = MPI_REQUEST_NULL;
    };
    std::vector<unwanted> unwanted_;  // messages that no operation waits for
    bool all_disagree_ = false;       // … so all of them give up
    bool told_through_ = false;
    int through_ = 0;     // ranks that have sent everything
    bool stuck_ = false;  // MPI still uses memory of operations that were given up
    mpi_ops ops_;
    slot_table<slot> slots_;
    std::vector<ticket> active_;  // in the order of their start
};

}  // namespace

std::optional<std::string> mpi_unavailable(identity const&, comm_options const&) {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0) return mpi_is_over;
    return std::nullopt;
}

std::unique_ptr<collective_backend> make_mpi_backend(identity const& who, comm_options const& options) {
    auto const begin = clock::now();
    auto runtime = mpi_runtime::acquire(who, options);
    comm_options rest = options;
    if (options.deadline.count() > 0)
        rest.deadline = std::max(duration(options.deadline - (clock::now() - begin)), duration{0.01});
    mpi_world world = rendezvous(*runtime, who, rest);
    runtime->remember(world.ranks, who.rank, options.deadline);
    return std::make_unique<mpi_backend>(std::move(runtime), std::move(world), who.rank, options);
}

int running_mpi_world_size() noexcept {
    int size = 0;
    if (mpi_is_running()) MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

}  // namespace muster
