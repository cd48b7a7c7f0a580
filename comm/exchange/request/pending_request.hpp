// A pending request holds what the exchange knows of a request, from its submission to its end.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "comm/cuda/gpu_access.hpp"
#include "comm/exchange/request/exchange_request.hpp"

namespace muster::detail {

struct pending_request;

/// Shares a pending, which counts its owners itself: so the table of names can see that it alone is left and use it again. Each
/// pointer belongs to one thread at a time.
class pending_ptr {
  public:
    pending_ptr() noexcept = default;
    pending_ptr(std::nullptr_t) noexcept {}
    explicit pending_ptr(pending_request* of) noexcept : of_(of) { hold(of_); }
    pending_ptr(pending_ptr const& other) noexcept : of_(other.of_) { hold(of_); }
    pending_ptr(pending_ptr&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
    pending_ptr& operator=(pending_ptr other) noexcept {
        std::swap(of_, other.of_);
        return *this;
    }
    ~pending_ptr() {
        if (of_ != nullptr) release(of_);
    }

    static pending_ptr make();
    /// A request of the exchange itself, submitted now.
    static pending_ptr make_internal(exchange_kind kind, std::string_view name, int set);

    pending_request* get() const noexcept { return of_; }
    pending_request* operator->() const noexcept { return of_; }
    pending_request& operator*() const noexcept { return *of_; }
    explicit operator bool() const noexcept { return of_ != nullptr; }
    bool operator==(pending_ptr const& other) const noexcept { return of_ == other.of_; }

    // For those who count by themselves.
    static void hold(pending_request* of) noexcept;
    static void release(pending_request* of) noexcept;

  private:
    pending_request* of_ = nullptr;
};

using exchange_clock = std::chrono::steady_clock;
using shared_request = std::shared_ptr<exchange_request const>;

/// Where a tensor is read from and written to.
struct tensor_io {
    tensor_view in;
    tensor_view out;  ///< data null: the exchange gives it memory (allgather, alltoall, reducescatter)
};

/// An allreduce of one tensor, its arguments checked already.
struct single_allreduce {
    std::string_view name;
    int set = 0;
    reduction how = reduction::sum;
    scaling scale{};
    compression wire = compression::none;
    bool error_feedback = false;
    tensor_shape shape;
    tensor_io io;
    void* stream = nullptr;  ///< device memory
};

/// Called once when a request has ended.
struct completion_call {
    void (*call)(void*) = nullptr;
    void* state = nullptr;
};

/// The result of one tensor of a group, for operations with separate results (allgather, reducescatter).
struct group_result {
    tensor_view view;
    std::unique_ptr<std::byte[]> memory;  ///< of an output that the exchange gave in host memory
    cuda::unique_memory device_memory;    ///< the same in device memory
    std::vector<std::int64_t> rows;       ///< as pending_request::rows
};

/// Written by the submitting thread until it is handed over, then by the exchange's thread until `state` says that it has ended,
/// from when on it does not change any more, unless the table of names has it for itself and uses it again. `deadline` and
/// `waited` may be changed by any thread meanwhile. What every request needs comes first.
struct pending_request {
    enum class phase : std::uint8_t { waiting, done, failed };

    std::atomic<std::uint32_t> owners{0};
    /// `state` and `waited` in one order for all threads, so that either the end sees who waits or that one sees the end.
    std::atomic<phase> state{phase::waiting};
    std::atomic<bool> waited{false};  ///< a thread blocks until it ends
    std::atomic<bool> has_calls{false};
    bool has_extras = false;  ///< a fault, memory, rows or a number are set
    bool stall_told = false;  ///< the exchange's thread only, as are `announced` and the place
    int set = 0;
    shared_request what;                                 ///< requests that repeat each other share it
    tensor_io one;                                       ///< of a single tensor
    std::shared_ptr<std::vector<tensor_io> const> many;  ///< of a group; else null
    std::size_t bytes = 0;                               ///< of all inputs
    exchange_clock::time_point submitted;
    exchange_clock::time_point announced{};
    std::atomic<exchange_clock::duration::rep> deadline{0};  ///< since the clock's epoch; 0: without end
    std::unique_ptr<device_part> gpu;                        ///< where tensors lie in device memory
    std::atomic<bool> handed{false};                         ///< the device knows of all that is to be done there

    static constexpr std::size_t nowhere = ~std::size_t{0};
    std::size_t cache_place = nowhere;  ///< where the response cache had the last request of this name

    tensor_view result;  ///< of a single tensor: where its output is, and its elements
    errc code = errc::peer_failed;
    std::string fault;
    std::vector<int> culprits;
    std::unique_ptr<std::byte[]> memory;  ///< of an output that the exchange gave
    std::vector<std::int64_t> rows;       ///< allgather, alltoall: rows that came from each rank
    std::vector<group_result> parts;      ///< of a group of allgathers or reducescatters: of each tensor
    int number = 0;                       ///< join: the last rank; include: the number of the new set
    std::vector<completion_call> calls;   ///< under the lock of those who wait for the end

    std::span<tensor_io const> tensors() const noexcept {
        if (many) return *many;
        return {&one, what->tensors.size()};
    }

    /// Forgets how it ended. It must have, and have no other owner than the caller.
    void use_again() noexcept;
};

/// The request for that, `last` being the last one of its name, or null: the very same if it repeats that.
shared_request request_of(single_allreduce const& from, pending_ptr const& last);

/// What is to be submitted next under a name: the last request itself if nobody else has it any more. It is the last one from now on.
pending_ptr next_after(pending_ptr& last, shared_request what);

// The inside of a prepared group: holds its request and where its tensors lie.

struct prepared {
    shared_request what;
    int set = 0;
    std::shared_ptr<std::vector<tensor_io> const> tensors;
    std::size_t bytes = 0;
    bool on_device = false;  ///< some of the tensors
};

// A name table finds the last request of each name.

/// The last request under each name of each process set, also when it has ended: in the steady state a name, its request and its
/// place in the cache are used again, with no memory asked for. Names that do not come back are forgotten. Not thread safe.
class name_table {
  public:
    /// Where the last request under this name is kept; null if there was no request.
    pending_ptr& last(int set, std::string_view name);

    /// A set that is no more.
    void forget(int set);

    template <typename Body>
    void for_in_flight(Body&& body) const {
        for (auto const& names : by_set_)
            for (auto const& [name, each] : names.requests)
                if (is_waiting(each)) body(*each);
    }

    static bool is_waiting(pending_ptr const& one) noexcept {
        return one && one->state.load(std::memory_order_acquire) == pending_request::phase::waiting;
    }

  private:
    struct text_hash : std::hash<std::string_view> {
        using is_transparent = void;
    };
    struct names_of_set {
        std::unordered_map<std::string, pending_ptr, text_hash, std::equal_to<>> requests;
        std::size_t room = 4096;  // names before those are looked for that have not come back
        exchange_clock::time_point last_sweep{};
    };
    static void sweep(names_of_set& names);

    std::vector<names_of_set> by_set_;
};

// Call checks find wrong arguments of an exchange's call, on this rank alone.

/// What is wrong with tensors, numbers and root of a request on a set of so many ranks, `rank` being this one there; or "". Pure.
std::string fault_of(pending_request const& what, int ranks, int rank);

/// The same of an allreduce of one tensor.
std::string fault_of(single_allreduce const& what);

}  // namespace muster::detail
