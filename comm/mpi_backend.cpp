#include "comm/mpi_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>

#include "base/log.hpp"
#include "comm/internal/mpi_call.hpp"
#include "comm/internal/mpi_direct_allreduce.hpp"
#include "comm/internal/mpi_ops.hpp"
#include "comm/internal/mpi_runtime.hpp"
#include "comm/kernels.hpp"
#include "comm/world_check.hpp"

namespace muster {

namespace {

using namespace detail;

/// MPI counts in int, and algorithms within MPI have multiplied ints into bytes: larger tensors go in pieces of this.
constexpr std::size_t piece_bytes = std::size_t{1} << 28;

/// How long a rank that gives up operations tries to get MPI to let go of their memory, all operations of a communicator
/// together.
constexpr std::chrono::milliseconds farewell{500};

/// One collective in flight.
struct slot {
    enum class kind { idle, direct, native, abandoned };
    kind way = kind::idle;
    bool finished = false;
    std::exception_ptr failure;
    collective what;
    direct_allreduce direct;
    std::vector<MPI_Request> requests;
    std::vector<unique_type> types;  // what the requests still need
};

/// Calls `body(offset in elements, elements)` for pieces of the tensor.
template <typename Body>
void for_pieces(tensor_view const& view, Body&& body) {
    std::size_t const most = piece_bytes / size_of(view.type);
    for (std::size_t first = 0; first < view.count; first += most) body(first, std::min(most, view.count - first));
}

/// The traffic of `who`'s world, checked on all ranks, in the order of the identities' ranks.
unique_comm make_comm(identity const& who, comm_options const& options, std::vector<std::string>& hosts, bool& crowded) {
    auto const own_copy = [](MPI_Comm comm) {
        unique_comm owner(comm);
        check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        return owner;
    };
    int size = 0, rank = 0;
    check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
    MPI_Comm copy = MPI_COMM_NULL;
    check(MPI_Comm_dup(MPI_COMM_WORLD, &copy), "MPI_Comm_dup");
    unique_comm comm = own_copy(copy);
    world_record const mine = describe_world(who, options);
    std::vector<world_record> records(static_cast<std::size_t>(size));
    check(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, records.data(), sizeof mine, MPI_BYTE, comm.get()), "MPI_Allgather");
    check_world(records, who);
    crowded = is_crowded(records, mine.host);
    bool reordered = false;
    hosts.resize(records.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
        reordered = reordered || static_cast<std::size_t>(records[i].rank) != i;
        hosts[static_cast<std::size_t>(records[i].rank)] = records[i].host;
    }
    if (reordered) {
        check(MPI_Comm_split(comm.get(), 0, who.rank, &copy), "MPI_Comm_split");
        comm = own_copy(copy);
    }
    return comm;
}

class mpi_backend final : public collective_backend {
  public:
    mpi_backend(identity const& who, comm_options const& options)
        : runtime_(mpi_runtime::acquire(options.several_threads)),
          comm_(make_comm(who, options, hosts_, crowded_)),
          native_(comm_.get()) {
        world_ = {comm_.get(), who.rank, who.world_size, &hosts_};
        direct_ = who.world_size <= options.direct_ranks;
        int* upper = nullptr;
        int found = 0;
        check(MPI_Comm_get_attr(comm_.get(), MPI_TAG_UB, &upper, &found), "MPI_Comm_get_attr");
        if (found != 0) largest_tag_ = *upper;
        // Small tags leave no room for what tells mismatched tensors apart (direct_tag).
        direct_ = direct_ && largest_tag_ >= 1 << 24;
    }

    ~mpi_backend() override {
        bool const unwinding = std::uncaught_exceptions() > 0;
        if (!unwinding && !stuck_ && barriers_are_through()) return;
        // MPI may still use all this memory, and other ranks may never come to a collective end.
        runtime_->leave_unfinalised();
        static_cast<void>(comm_.release());
        for (auto& left : slots_) static_cast<void>(left.release());
    }

    std::vector<late_rank> late_ranks(ticket) noexcept override { return {}; }
    std::unique_ptr<collective_backend> subset(std::span<int const>) override {
        throw comm_error(errc::unavailable, "mpi: not yet");
    }
    std::vector<std::string> const& hosts() const noexcept override { return hosts_; }
    bool crowded() const noexcept override { return crowded_; }
    void const* native() const noexcept override { return &native_; }

    ticket start(collective const& what) override {
        if (what.what != collective::kind::barrier && what.out.count == 0) {
            ++sequence_;  // ranks that differ about it must not take the next one for this one
            return 0;
        }
        ticket const which = take_slot();
        slot& next = *slots_[which - 1];
        next.what = what;
        try {
            start_in(next);
        } catch (...) {
            give_up(next);
            throw;
        }
        active_.push_back(which);
        return which;
    }

    bool done(ticket which) override {
        slot& asked = *slots_[which - 1];
        if (!asked.finished) advance_all();
        if (!asked.finished) return false;
        auto const failure = std::move(asked.failure);
        if (failure) {
            give_up(asked);
            std::rethrow_exception(failure);
        }
        asked.way = slot::kind::idle;
        free_.push_back(which);
        return true;
    }

    void progress() override { advance_all(); }

    void abandon(ticket which) noexcept override {
        std::erase(active_, which);
        give_up(*slots_[which - 1]);
    }

  private:
    ticket take_slot() {
        if (free_.empty()) {
            slots_.push_back(std::make_unique<slot>());
            free_.reserve(slots_.size());
            active_.reserve(slots_.size());
            return static_cast<ticket>(slots_.size());
        }
        ticket const which = free_.back();
        free_.pop_back();
        return which;
    }

    void start_in(slot& next) {
        next.finished = false;
        collective const& what = next.what;
        next.requests.clear();
        next.types.clear();
        next.way = slot::kind::native;
        switch (what.what) {
            case collective::kind::allreduce:
                if (!direct_) return start_allreduce(next);
                next.way = slot::kind::direct;
                return next.direct.start(world_, direct_tag(sequence_++, what, largest_tag_), what);
            case collective::kind::broadcast: return start_broadcast(next);
            case collective::kind::allgather: return start_allgather(next);
            case collective::kind::barrier:
                return check(MPI_Ibarrier(comm_.get(), &next.requests.emplace_back(MPI_REQUEST_NULL)), "MPI_Ibarrier");
            case collective::kind::reducescatter:
            case collective::kind::alltoall:
            case collective::kind::exchange: throw comm_error(errc::unavailable, "mpi: not yet");
        }
    }

    // All pieces are started at once: collectives of one communicator must start in the same order on all ranks, so none may
    // start later, whenever the piece before it happens to finish.

    void start_allreduce(slot& next) {
        collective const& what = next.what;
        for_pieces(what.in, [&](std::size_t first, std::size_t count) {
            std::size_t const at = first * size_of(what.in.type);
            void* const out = static_cast<std::byte*>(what.out.data) + at;
            void const* const in =
                what.in.data == what.out.data ? MPI_IN_PLACE : static_cast<std::byte const*>(what.in.data) + at;
            check(MPI_Iallreduce(in, out, static_cast<int>(count), mpi_type(what.in.type), ops_.get(what.in.type, what.how),
                                 comm_.get(), &next.requests.emplace_back(MPI_REQUEST_NULL)),
                  "MPI_Iallreduce");
        });
    }

    void start_broadcast(slot& next) {
        collective const& what = next.what;
        for_pieces(what.out, [&](std::size_t first, std::size_t count) {
            check(MPI_Ibcast(static_cast<std::byte*>(what.out.data) + first * size_of(what.out.type), static_cast<int>(count),
                             mpi_type(what.out.type), what.root, comm_.get(), &next.requests.emplace_back(MPI_REQUEST_NULL)),
                  "MPI_Ibcast");
        });
    }

    /// The places of one piece lie a whole `in` apart in `out`: a type of the piece's size with that extent says so.
    void start_allgather(slot& next) {
        collective const& what = next.what;
        auto* const own_place = static_cast<std::byte*>(what.out.data) + static_cast<std::size_t>(world_.rank) * what.in.bytes();
        bool const in_place = what.in.data == own_place;
        for_pieces(what.in, [&](std::size_t first, std::size_t count) {
            std::size_t const at = first * size_of(what.in.type);
            MPI_Datatype piece = MPI_DATATYPE_NULL, spaced = MPI_DATATYPE_NULL;
            check(MPI_Type_contiguous(static_cast<int>(count), mpi_type(what.in.type), &piece), "MPI_Type_contiguous");
            unique_type const owner(piece);
            check(MPI_Type_create_resized(piece, 0, static_cast<MPI_Aint>(what.in.bytes()), &spaced), "MPI_Type_create_resized");
            next.types.emplace_back(spaced);
            check(MPI_Type_commit(&spaced), "MPI_Type_commit");
            void const* const in = in_place ? MPI_IN_PLACE : static_cast<std::byte const*>(what.in.data) + at;
            check(MPI_Iallgather(in, static_cast<int>(count), mpi_type(what.in.type), static_cast<std::byte*>(what.out.data) + at,
                                 1, spaced, comm_.get(), &next.requests.emplace_back(MPI_REQUEST_NULL)),
                  "MPI_Iallgather");
        });
    }

    void advance_all() {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < active_.size(); ++i) {
            slot& current = *slots_[active_[i] - 1];
            try {
                current.finished = advance(current);
            } catch (...) {
                current.failure = std::current_exception();
                current.finished = true;
            }
            if (!current.finished) active_[kept++] = active_[i];
        }
        active_.resize(kept);
    }

    bool advance(slot& current) {
        if (current.way == slot::kind::direct) return current.direct.advance();
        int all = 0;
        check(MPI_Testall(static_cast<int>(current.requests.size()), current.requests.data(), &all, MPI_STATUSES_IGNORE),
              "MPI_Testall");
        if (all == 0) return false;
        current.types.clear();
        collective const& what = current.what;
        if (what.what == collective::kind::allreduce && what.how == reduction::average)
            divide(what.out.type, what.out.data, what.out.count, world_.size);
        return true;
    }

    /// The slot is never used again. Tries, while the caller's memory is still there, to get MPI to let go of it: it withdraws
    /// receives, and takes in what others sent, as they do for this rank. Where that fails MPI must not be called any more once
    /// the memory is gone.
    void give_up(slot& lost) noexcept {
        using clock = std::chrono::steady_clock;
        if (!farewell_until_) farewell_until_ = clock::now() + farewell;
        if (lost.way == slot::kind::direct) lost.direct.abandon();
        lost.way = slot::kind::abandoned;
        if (lost.what.what == collective::kind::barrier) return;  // uses no memory
        for (;;) {
            bool const swallowed = swallow();
            int all = 0;
            MPI_Testall(static_cast<int>(lost.requests.size()), lost.requests.data(), &all, MPI_STATUSES_IGNORE);
            if (all != 0 && lost.direct.released() && !swallowed) return;
            if (clock::now() > *farewell_until_) break;
        }
        stuck_ = true;
    }

    /// Whether barriers that were given up have ended, perhaps within a short wait.
    bool barriers_are_through() noexcept {
        auto const is_through = [](std::unique_ptr<slot> const& each) {
            if (each->way != slot::kind::abandoned || each->what.what != collective::kind::barrier) return true;
            int all = 0;
            MPI_Testall(static_cast<int>(each->requests.size()), each->requests.data(), &all, MPI_STATUSES_IGNORE);
            return all != 0;
        };
        auto const until = std::chrono::steady_clock::now() + farewell;
        while (!std::all_of(slots_.begin(), slots_.end(), is_through))
            if (std::chrono::steady_clock::now() > until) return false;
        return true;
    }

    /// Receives a message that nobody waits for any more, so that its sender can let go of it. False if there is none.
    bool swallow() noexcept {
        int found = 0, bytes = 0;
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Status status;
        if (MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_.get(), &found, &message, &status) != MPI_SUCCESS || found == 0)
            return false;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        std::unique_ptr<std::byte[]> const memory(new (std::nothrow) std::byte[static_cast<std::size_t>(bytes)]);
        if (!memory) return false;
        MPI_Mrecv(memory.get(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        return true;
    }

    std::shared_ptr<mpi_runtime> runtime_;  // outlives every handle below
    std::vector<std::string> hosts_;
    bool crowded_ = false;
    unique_comm comm_;
    MPI_Comm native_;  // a copy whose address users may have
    direct_world world_;
    bool direct_ = false;
    unsigned sequence_ = 0;
    int largest_tag_ = 32767;  // the least that MPI may have
    std::optional<std::chrono::steady_clock::time_point> farewell_until_;
    bool stuck_ = false;  // MPI still uses memory of operations that were given up
    mpi_ops ops_;
    std::vector<std::unique_ptr<slot>> slots_;  // ticket t is slot t-1
    std::vector<ticket> free_;
    std::vector<ticket> active_;  // in the order of their start
};

}  // namespace

std::optional<std::string> mpi_unavailable(identity const&, comm_options const&) {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0)
        return "MPI has been finalised and cannot be initialised again; keep one communicator until the program ends";
    return std::nullopt;
}

std::unique_ptr<collective_backend> make_mpi_backend(identity const& who, comm_options const& options) {
    return std::make_unique<mpi_backend>(who, options);
}

int running_mpi_world_size() noexcept {
    int size = 0;
    if (mpi_is_running()) MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

}  // namespace muster
