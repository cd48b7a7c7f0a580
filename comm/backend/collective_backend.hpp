// What a backend of the communicator does. Written for those who add a backend; users call `communicator`.
#pragma once

#include <sched.h>
#include <time.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/backend/comm_buffer.hpp"
#include "comm/backend/comm_options.hpp"
#include "comm/tensor/tensor.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// One collective, its arguments checked already. The memory behind the views stays valid until it has finished.
struct collective {
    enum class kind : std::uint8_t { allreduce, broadcast, allgather, barrier, reducescatter, alltoall, exchange };
    kind what = kind::barrier;
    tensor_view in;   ///< broadcast: the same as `out`
    tensor_view out;  ///< allgather: the ranks' `in`, one after the other; reducescatter: share_of(in.count, size, rank)
    reduction how = reduction::sum;             ///< allreduce, reducescatter
    int root = 0;                               ///< broadcast: who sends; exchange: the other rank, perhaps this one itself
    scaling scale{};                            ///< allreduce, reducescatter
    std::vector<std::size_t> send_counts{};     ///< alltoall: elements of `in` for each rank, in their order
    std::vector<std::size_t> receive_counts{};  ///< alltoall, allgather: elements of `out` from each; allgather: empty if even
    void* stream = nullptr;                     ///< device memory: the stream on which the program works on the tensors
};
std::string_view to_string(collective::kind what) noexcept;

/// A rank that keeps a collective from finishing.
struct late_rank {
    int rank = 0;
    bool dead = false;  ///< it will never come; else it may be stopped, or only late
    std::string why;    ///< "process 4711 is stopped"
};

/// Names a started collective until it has finished; 0 names one that finished at once.
using ticket = std::uint32_t;

/// All state of a way to reach the other ranks. Not thread safe: one call at a time.
class collective_backend {
  public:
    collective_backend() = default;
    collective_backend(collective_backend const&) = delete;
    collective_backend& operator=(collective_backend const&) = delete;
    virtual ~collective_backend() = default;

    /// The host name of each rank.
    virtual std::vector<std::string> const& hosts() const noexcept = 0;

    /// Whether ranks share processors, so that whoever waits should give its own away.
    virtual bool crowded() const noexcept = 0;

    /// Whether it works on tensors in this memory.
    virtual bool reaches(memory_kind where) const noexcept { return where == memory_kind::host; }

    /// Called by whoever waits, after a poll in vain, to let others have the processor. `weary`: it has waited for so long that
    /// some microseconds more do not count.
    virtual void give_way(bool weary) noexcept {
        timespec const nap{0, 50'000};
        if (weary)
            ::nanosleep(&nap, nullptr);
        else
            ::sched_yield();
    }

    /// Starts it and returns without waiting for any other rank. Collective: every rank starts the same collectives in the same
    /// order; an exchange only the two that take part, among the collectives of both. Counts of 0 are allowed everywhere.
    virtual ticket start(collective const& what) = 0;

    /// Moves everything in flight forward without waiting; true if `which` has finished, its ticket being void from then on.
    /// Throws what made `which` fail, its ticket being void then too.
    virtual bool done(ticket which) = 0;

    /// Moves everything in flight forward without waiting; failures are kept for done().
    virtual void progress() = 0;

    /// Device memory: makes `stream` wait, on the device, for `which`, which is still to be asked for by done(). False where it
    /// has not been handed to the device yet: ask again. Throws what made it fail. Backends of host memory are not asked.
    virtual bool order(ticket /*which*/, void* /*stream*/) { return true; }

    /// Gives up on `which`: it is neither waited for nor told to the caller again. Memory that others may still write to stays
    /// allocated.
    virtual void abandon(ticket which) noexcept = 0;

    /// The ranks that are known to be dead or stopped, or to have not yet come to `which`, by ascending rank; empty if it cannot
    /// tell. Asked a few times a second while somebody waits, and before `which` is abandoned; must not block.
    virtual std::vector<late_rank> late_ranks(ticket which) noexcept = 0;

    /// A backend over these of its ranks, in this order (distinct, in range, the same on all ranks), with traffic of its own;
    /// null on ranks that are not among them. Collective over all ranks, which have just met in an allreduce where
    /// the backend reaches host memory. Throws comm_error (errc::timeout) when the deadline of its options passes.
    virtual std::unique_ptr<collective_backend> subset(std::span<int const> ranks) = 0;

    /// See communicator::allocate(); thread safe.
    virtual comm_buffer allocate(std::size_t bytes) { return plain_buffer(bytes); }

    /// The library's own handle, see communicator::native().
    virtual void const* native() const noexcept = 0;
};

class communicator;

/// A row in the table of backends.
struct backend_row {
    std::string_view name;
    /// Why it cannot serve this world, or nothing if it can. Pure but for questions to its library; not collective.
    std::optional<std::string> (*unavailable)(identity const&, comm_options const&);
    /// Collective where the backend has peers.
    std::unique_ptr<collective_backend> (*create)(identity const&, comm_options const&);
    /// What it reaches; a row is not chosen for tensors in other memory.
    memory_kind memory = memory_kind::host;
    /// The ranks meet in create() before anything is made, and one that cannot be served says so there: create() is to be called
    /// on it too, and throws the same on all ranks.
    bool tells_refusal = false;
    /// What is said about tensors in other memory, where more is to be said than that they are not reached; else "".
    std::string_view instead{};
    /// The same as create() for the ranks of a communicator for host memory, which meet over it; null where it needs the whole job.
    std::unique_ptr<collective_backend> (*create_over)(communicator&, comm_options const&) = nullptr;
};

/// The rows in the order in which they are tried.
std::span<backend_row const> backends() noexcept;

/// The row for device memory that this name names; the first one for any other name. Throws errc::usage for a name that is not in
/// the table.
backend_row const& device_row(std::string_view name);

/// A row, and in words why that one: "backend shm, the first in the table that can serve them; refused before: self: …".
struct backend_choice {
    backend_row const* row = nullptr;
    std::string why;
};

/// The row that options.backend names, else the first that is available; logs what was tried and why it was refused. Throws
/// errc::usage for a name that is not in the table and errc::unavailable, with every refusal, if none is left.
backend_row const& select_backend(identity const& who, comm_options const& options);
/// The same over any table.
backend_row const& select_backend(std::span<backend_row const> table, identity const& who, comm_options const& options);
backend_choice choose_backend(std::span<backend_row const> table, identity const& who, comm_options const& options);

/// Where select_backend() found none for this rank, while other ranks may wait for it in one whose ranks meet first: takes part
/// in that meeting. Throws what all of them throw, naming who lacks what; returns where there is no such backend.
void tell_refusal(identity const& who, comm_options const& options);

}  // namespace muster
