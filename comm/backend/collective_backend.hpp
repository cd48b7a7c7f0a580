// The interface of a backend of the communicator. Serves those who add a backend; users call `communicator`.
#pragma once

#include <sched.h>
#include <time.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "comm/tensor/tensor.hpp"
#include "pmix/identity.hpp"

namespace muster {

// The owner of memory that collectives are fastest on.

/// Move-only owner of memory from communicator::allocate(), which is zeroed and begins on a page. The backend chooses the kind of
/// memory; any part of it may be a tensor of any communicator.
///
/// Keep it until every collective on it has finished. It may outlive the communicator that it came from. With the backend shm a
/// forked child shares the memory with its parent instead of having a copy, and should leave it alone.
class comm_buffer {
  public:
    comm_buffer() noexcept = default;
    /// The destructor calls `release` with `data`.
    comm_buffer(std::byte* data, std::size_t bytes, std::function<void(std::byte*)> release)
        : memory_(data, std::move(release)), bytes_(bytes) {}

    std::byte* data() const noexcept { return memory_.get(); }
    std::size_t bytes() const noexcept { return bytes_; }
    explicit operator bool() const noexcept { return data() != nullptr; }

    /// Returns all whole elements of the memory.
    template <typename T>
    std::span<T> as() const noexcept {
        return {reinterpret_cast<T*>(data()), bytes_ / sizeof(T)};
    }

  private:
    std::unique_ptr<std::byte, std::function<void(std::byte*)>> memory_;
    std::size_t bytes_ = 0;
};

/// Throws std::bad_alloc if `bytes` exceeds PTRDIFF_MAX, which rounded up to pages might become few.
void refuse_absurd_size(std::size_t bytes);

/// Returns plain memory of this process. Throws std::bad_alloc.
comm_buffer plain_buffer(std::size_t bytes);

/// One collective whose arguments have been checked. The memory behind the views stays valid until it has finished.
struct collective {
    enum class kind : std::uint8_t { allreduce, broadcast, allgather, barrier, reducescatter, alltoall, sendrecv };
    kind what = kind::barrier;
    tensor_view in;   ///< broadcast: the same as `out`
    tensor_view out;  ///< allgather: the ranks' `in`, one after the other; reducescatter: share_of(in.count, size, rank)
    reduction how = reduction::sum;             ///< allreduce, reducescatter
    int root = 0;                               ///< broadcast: who sends; sendrecv: the other rank, perhaps this one itself
    scaling scale{};                            ///< allreduce, reducescatter
    std::vector<std::size_t> send_counts{};     ///< alltoall: elements of `in` for each rank, in their order
    std::vector<std::size_t> receive_counts{};  ///< alltoall, allgather: elements of `out` from each; allgather: empty if even
    void* stream = nullptr;                     ///< device memory: the stream on which the program works on the tensors
};
std::string_view to_string(collective::kind what) noexcept;

/// Copies what describes an allreduce or reducescatter; leaves the other parts, whose copies would allocate.
inline void set_reduction(collective& to, collective const& from) noexcept {
    to.what = from.what;
    to.in = from.in;
    to.out = from.out;
    to.how = from.how;
    to.scale = from.scale;
}

/// A rank that keeps a collective from finishing.
struct late_rank {
    int rank = 0;
    bool dead = false;  ///< it will never come; else it may be stopped, or only late
    std::string why;    ///< "process 4711 is stopped"
};

/// Names a started collective until it has finished; 0 names one that finished at once.
using ticket = std::uint32_t;

/// A way to reach the other ranks, with all its state. Not thread safe: one call at a time.
class collective_backend {
  public:
    collective_backend() = default;
    collective_backend(collective_backend const&) = delete;
    collective_backend& operator=(collective_backend const&) = delete;
    virtual ~collective_backend() = default;

    /// Returns the host name of each rank.
    virtual std::vector<std::string> const& hosts() const noexcept = 0;

    /// Returns whether ranks share processors, so that a waiting rank should yield its own.
    virtual bool crowded() const noexcept = 0;

    /// Returns whether it works on tensors in this memory.
    virtual bool reaches(memory_kind where) const noexcept { return where == memory_kind::host; }

    /// Yields the processor of a rank that waits, after a poll that found nothing new. `waited_long`: it has waited for so long
    /// that some microseconds more do not matter.
    virtual void give_way(bool waited_long) noexcept {
        timespec const nap{0, 50'000};
        if (waited_long)
            ::nanosleep(&nap, nullptr);
        else
            ::sched_yield();
    }

    /// Starts `what` and returns without waiting for any other rank. Collective: every rank starts the same collectives in the
    /// same order; only its two ranks start a sendrecv, in the order of all that both start. Counts of 0 are always allowed.
    virtual ticket start(collective const& what) = 0;

    /// Moves all collectives under way forward without waiting. Returns true once `which` has finished; throws what made it fail.
    /// After either its ticket is void.
    virtual bool done(ticket which) = 0;

    /// Moves all collectives under way forward without waiting; failures are kept for done().
    virtual void progress() = 0;

    /// Device memory: makes `stream` wait, on the device, for `which`; done() must still be called for it. Returns false if
    /// `which` has not been handed to the device yet: call again. Throws what made it fail. Backends of host memory keep this
    /// one.
    virtual bool order(ticket /*which*/, void* /*stream*/) { return true; }

    /// Gives up on `which`: its ticket is void, and done() no longer reports it. Memory that others may still write to stays
    /// allocated.
    virtual void abandon(ticket which) noexcept = 0;

    /// Returns, in ascending order, the ranks known to be dead or stopped, or not to have come to `which` yet; empty if it cannot
    /// tell. Called a few times a second during a wait, and before `which` is abandoned; must not block.
    virtual std::vector<late_rank> late_ranks(ticket which) noexcept = 0;

    /// Returns the only rank whose part of `which`, which has not finished, has not come yet; -1: there are several, or it is not known. Called often; cheap.
    virtual int awaited(ticket /*which*/) noexcept { return -1; }

    /// Returns a backend over these of its ranks, in this order (distinct, in range, the same on all ranks), with its own
    /// traffic; null on ranks that are not among them. Collective over all ranks, which have just met in an allreduce if the
    /// backend reaches host memory. Throws comm_error (errc::timeout) when the deadline of its options passes.
    virtual std::unique_ptr<collective_backend> subset(std::span<int const> ranks) = 0;

    /// See communicator::allocate(); thread safe.
    virtual comm_buffer allocate(std::size_t bytes) { return plain_buffer(bytes); }

    /// Returns what it found out about this machine, see communicator::about().
    virtual std::string about() const { return {}; }

    /// Returns the library's own handle, see communicator::native().
    virtual void const* native() const noexcept = 0;
};

// A function that gathers bytes of all ranks, for backends that need them before they can send.

/// Returns every rank's bytes by rank, given this rank's and a deadline. Collective; all ranks give the same number of bytes.
using gather_function =
    std::function<std::vector<std::vector<std::byte>>(identity const&, std::span<std::byte const> mine, duration deadline)>;

/// Cuts the result of an allgather of `ranks` equal parts into the part of each rank.
inline std::vector<std::vector<std::byte>> split_by_rank(std::span<std::byte const> all, std::size_t ranks) {
    std::vector<std::vector<std::byte>> parts;
    std::size_t const each = all.size() / ranks;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        auto const part = all.subspan(rank * each, each);
        parts.emplace_back(part.begin(), part.end());
    }
    return parts;
}

}  // namespace muster
