// The owner of a collective under way. Waits for it, or asks whether it has finished.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "comm/backend/collective_backend.hpp"

namespace muster::detail {

struct communicator_state;

/// Counts the owners of a state that one thread uses at a time, without atomic operations: right after a message was written to
/// memory that another process reads, an atomic operation takes as long as the message itself.
class state_owner {
  public:
    state_owner() noexcept = default;
    explicit state_owner(communicator_state* state) noexcept : state_(state) { add(); }
    state_owner(state_owner const& other) noexcept : state_(other.state_) { add(); }
    state_owner(state_owner&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    state_owner& operator=(state_owner other) noexcept {
        std::swap(state_, other.state_);
        return *this;
    }
    ~state_owner() {
        if (state_ != nullptr) drop();
    }

    void reset() noexcept {
        if (state_ != nullptr) drop();
        state_ = nullptr;
    }
    communicator_state& operator*() const noexcept { return *state_; }
    communicator_state* operator->() const noexcept { return state_; }
    explicit operator bool() const noexcept { return state_ != nullptr; }

  private:
    void add() noexcept;
    void drop() noexcept;  ///< deletes the state with its last owner

    communicator_state* state_ = nullptr;
};

}  // namespace muster::detail

namespace muster {

/// Move-only owner of a started collective. Until it has finished, the tensors must stay valid, and the program may at most read
/// those that the collective only reads. Keeps the communicator's state alive. Not thread safe, and not at once with another call
/// on its communicator.
class [[nodiscard]] operation {
  public:
    operation() noexcept = default;  ///< finished
    operation(operation&& other) noexcept;
    operation& operator=(operation&& other) noexcept;
    operation(operation const&) = delete;
    operation& operator=(operation const&) = delete;

    /// Waits, unless its communicator has failed; a failure is logged.
    ~operation();

    /// Moves all collectives under way forward and returns whether this one has finished; never blocks. Throws comm_error or
    /// mpi_error if it failed.
    bool done();

    /// Blocks until finished, for at most the communicator's deadline. Throws comm_error or mpi_error if it failed.
    void wait();

    /// The same for at most `deadline` from now; 0 means without end. When that passes, throws comm_error (errc::timeout) naming
    /// tensor, rank, host and the ranks at fault as far as they are known (also as comm_error::culprits()). If the process of a
    /// rank is known to be gone, throws errc::peer_failed without waiting that long. In both cases the communicator has failed:
    /// every further call on it throws, and the tensors of its unfinished operations must stay valid until the process ends,
    /// since a late rank may still cause writes to them; none of them holds a result.
    void wait(duration deadline);

    /// Returns the ranks that keep it from finishing, as far as they are known: dead, stopped, or not there yet. Empty once it
    /// has finished or its communicator has failed. Never blocks; meant for a few calls a second.
    std::vector<late_rank> late_ranks() const noexcept;

    /// Device memory: what is put on `stream` (a CUstream or cudaStream_t) from now on waits, on the device, for this operation.
    /// Blocks only until the device knows of it; the first collective of a communicator on NCCL connects the ranks, and so waits
    /// for the others. Wait for the operation before you trust its result: if it fails, the stream goes on all the same. Throws
    /// as wait() does, and errc::usage if the backend has no streams.
    void order(void* stream);

    /// The same without blocking: returns false if the device does not know of it yet; ask again.
    bool try_order(void* stream);

  private:
    friend class communicator;
    operation(detail::state_owner state, ticket which, std::string_view what, std::string_view name)
        : state_(std::move(state)), ticket_(which), what_(what), name_(name) {}
    void finish() noexcept;

    detail::state_owner state_;  ///< null once finished
    ticket ticket_ = 0;
    std::string_view what_;  // lives as long as the program
    std::string name_;
};

}  // namespace muster
