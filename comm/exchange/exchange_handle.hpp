// A handle waits for a submitted request and gives its result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/units.hpp"
#include "comm/tensor/tensor.hpp"

namespace muster {

namespace detail {
struct pending_request;
class exchange_core;
}  // namespace detail

/// Shares a submitted request with the exchange; copies refer to the same request. Any threads may use it at once. It may be
/// dropped before the request has ended (its tensors must stay valid until then) and may outlive the exchange.
class exchange_handle {
  public:
    exchange_handle() noexcept = default;  ///< ended, without a result
    exchange_handle(exchange_handle const& other) noexcept;
    exchange_handle(exchange_handle&& other) noexcept
        : what_(std::exchange(other.what_, nullptr)), core_(std::move(other.core_)) {}
    exchange_handle& operator=(exchange_handle other) noexcept {
        std::swap(what_, other.what_);
        core_.swap(other.core_);
        return *this;
    }
    ~exchange_handle() {
        if (what_ != nullptr) release();
    }

    /// Returns whether it has ended, well or not. Never blocks.
    bool poll() const noexcept;

    /// Blocks until it has ended. Throws comm_error if it failed, naming the tensor and the ranks at fault (also as culprits()).
    void wait() const;

    /// The same, with a deadline of `deadline` from now if that is earlier (0 leaves it). A request that does not end in time
    /// ends the exchange: errc::timeout here, and every further call fails with the same reason.
    void wait(duration deadline) const;

    /// Device memory: what is put on `stream` (a CUstream or cudaStream_t of this rank's GPU) from now on waits,
    /// on the device, for the results. Blocks only until the device knows of all of it. Wait for the request before you use its
    /// name or its tensors again, or trust its results: if it fails, the stream goes on all the same. Throws comm_error as wait()
    /// does if it has failed by now, errc::usage if all tensors are in host memory.
    void order(void* stream) const;

    /// Blocks for at most `at_most`; returns whether it has ended. Changes nothing and throws nothing. `to_its_end`: the caller goes
    /// on waiting for it without doing anything else, so that ranks whose calls never meet learn of it soon, as those in wait() do.
    bool wait_for(duration at_most, bool to_its_end = false) const;

    /// Waits for all of them, of one exchange or of several; `deadline` as in wait(deadline), for all of them from now on. After
    /// all have ended, throws the first failure in their order.
    static void wait_all(std::span<exchange_handle const* const> all, duration deadline = {});

    /// Blocks until any of them has ended, for at most `at_most` (0 is without end), and changes no deadline. Returns the place of
    /// the first that has, or nothing when the time is over. Throws errc::usage if the list is empty, or if they are of several
    /// exchanges.
    static std::optional<std::size_t> wait_any(std::span<exchange_handle const* const> all, duration at_most = {});

    /// Calls `call(state)` once, when the request has ended, well or not: on the exchange's thread, or before this returns if it
    /// has ended already. A request may have several, which are called in any order. The call must not throw, must not block for
    /// long, since no other request of this rank goes on meanwhile, and must not use the exchange or its handles, except for
    /// poll(). It does not hurry the request: submissions may still be gathered (see exchange).
    void then(void (*call)(void*), void* state) const;

    /// Returns where the result of a single tensor is, after the request has ended well. Memory that the exchange gave lives as
    /// long as a handle to it.
    tensor_view result() const noexcept;

    /// Returns how many rows came from each rank in an allgather or alltoall that has ended well; for reducescatter the number of
    /// rows.
    std::span<std::int64_t const> rows() const noexcept;

    /// Return the same two of tensor `index` of a group of allgathers or reducescatters; index 0 of any other request gives those
    /// above. Empty beyond the last.
    tensor_view result_of(std::size_t index) const noexcept;
    std::span<std::int64_t const> rows_of(std::size_t index) const noexcept;

    /// Returns the rank that joined last, after a join.
    int number() const noexcept;

  private:
    friend class exchange;
    friend class prepared_group;
    exchange_handle(detail::pending_request& what, std::shared_ptr<detail::exchange_core> core) noexcept;
    void release() noexcept;
    void throw_if_failed() const;
    void bring_forward(duration deadline) const noexcept;
    template <typename Wait>
    void wait_by(Wait&& wait) const;

    detail::pending_request* what_ = nullptr;  ///< has its own count of owners
    std::shared_ptr<detail::exchange_core> core_;
};

// A prepared group reduces the same tensors again and again, checked once.

namespace detail {
struct prepared;
}

/// Made by exchange::prepare, which has checked everything and agreed on it with the other ranks. So start() costs no more than a
/// request of one tensor, whatever their number, except for the copies of what does not lie gap-free and the collective. Tensors
/// that lie gap-free, inputs and outputs, are reduced in place.
///
/// The memory of all tensors must stay valid until the last start() has ended; freeing it earlier is an error that nothing
/// detects. Between the end of one start() and the next the program may read and write it.
///
/// Owner; move-only. Destroying it is not collective and does not end what was started. It may outlive the exchange, but start()
/// may not be called then.
class prepared_group {
  public:
    prepared_group() noexcept;  ///< empty: start() throws errc::usage
    prepared_group(prepared_group&& other) noexcept;
    prepared_group& operator=(prepared_group&& other) noexcept;
    prepared_group(prepared_group const&) = delete;
    prepared_group& operator=(prepared_group const&) = delete;
    ~prepared_group();

    /// Reduces all of them, as allreduce_group under the group's name would; `stream` as exchange_call::stream. Throws
    /// errc::usage if that name is in flight, and the exchange's failure if it has failed. Any thread.
    exchange_handle start(void* stream = nullptr);

    std::string const& name() const;
    std::size_t tensors() const noexcept;
    std::size_t bytes() const noexcept;  ///< of all inputs

  private:
    friend class exchange;
    prepared_group(std::shared_ptr<detail::exchange_core> core, std::unique_ptr<detail::prepared const> what) noexcept;

    std::shared_ptr<detail::exchange_core> core_;
    std::unique_ptr<detail::prepared const> what_;
};

}  // namespace muster
