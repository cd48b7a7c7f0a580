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

/// Shares a pending_request, which has its own count of owners: so the table of names sees when it is the only owner and can use
/// the request again. Each pointer belongs to one thread at a time.
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
    /// Makes a request of the exchange itself, submitted now.
    static pending_ptr make_internal(exchange_kind kind, std::string_view name, int set);

    pending_request* get() const noexcept { return of_; }
    pending_request* operator->() const noexcept { return of_; }
    pending_request& operator*() const noexcept { return *of_; }
    explicit operator bool() const noexcept { return of_ != nullptr; }
    bool operator==(pending_ptr const& other) const noexcept { return of_ == other.of_; }

    // These are for owners that count by themselves.
    static void hold(pending_request* of) noexcept;
    static void release(pending_request* of) noexcept;

  private:
    pending_request* of_ = nullptr;
};

using exchange_clock = std::chrono::steady_clock;
using shared_request = std::shared_ptr<exchange_request const>;

/// The input and output of a tensor.
struct tensor_io {
    tensor_view in;
    tensor_view out;  ///< null data: the exchange gives it memory (allgather, alltoall, reducescatter)
};

/// An allreduce of one tensor whose arguments have been checked.
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

/// A call that is made once when a request has ended.
struct completion_call {
    void (*call)(void*) = nullptr;
    void* state = nullptr;
};

/// The result of one tensor of a group, for operations with separate results (allgather, reducescatter).
struct group_result {
    tensor_view view;
    std::unique_ptr<std::byte[]> memory;  ///< of an output that the exchange gave in host memory
    cuda::unique_memory device_memory;    ///< the same in device memory
    std::vector<std::int64_t> rows;       ///< see pending_request::rows
};

/// The submitting thread writes it until it is handed over, then the exchange's thread until `state` says that it has ended. Then
/// it does not change any more, unless the table of names is its only owner and uses it again. Any thread may change `deadline`
/// and `waited` meanwhile. The members that every request needs come first.
struct pending_request {
    enum class phase : std::uint8_t { waiting, done, failed };

    std::atomic<std::uint32_t> owners{0};
    /// All threads see changes of `state` and `waited` in one order: either the end sees who waits, or the waiting thread sees
    /// the end.
    std::atomic<phase> state{phase::waiting};
    std::atomic<bool> waited{false};  ///< a thread blocks until it ends
    std::atomic<bool> has_calls{false};
    bool has_extras = false;  ///< a fault, memory, rows or a number is set
    bool stall_told = false;  ///< only the exchange's thread uses it, `announced` and the place
    int set = 0;
    shared_request what;                                 ///< requests that repeat each other share it
    tensor_io one;                                       ///< of a single tensor
    std::shared_ptr<std::vector<tensor_io> const> many;  ///< of a group; else null
    std::size_t bytes = 0;                               ///< total of all inputs
    exchange_clock::time_point submitted;
    exchange_clock::time_point announced{};
    std::atomic<exchange_clock::duration::rep> deadline{0};  ///< since the clock's epoch; 0: without end
    std::unique_ptr<device_part> gpu;                        ///< if tensors lie in device memory
    std::atomic<bool> handed{false};                         ///< the device knows all that it has to do

    static constexpr std::size_t nowhere = ~std::size_t{0};
    std::size_t cache_place = nowhere;  ///< where the response cache had the last request of this name

    tensor_view result;  ///< of a single tensor: its output, with its elements
    errc code = errc::peer_failed;
    std::string fault;
    std::vector<int> culprits;
    std::unique_ptr<std::byte[]> memory;  ///< if the exchange gave the output
    std::vector<std::int64_t> rows;       ///< allgather, alltoall: rows that came from each rank
    std::vector<group_result> parts;      ///< of a group of allgathers or reducescatters: of each tensor
    int number = 0;                       ///< join: the last rank; include: the number of the new set
    std::vector<completion_call> calls;   ///< guarded by the lock of the waiting threads

    std::span<tensor_io const> tensors() const noexcept {
        if (many) return *many;
        return {&one, what->tensors.size()};
    }

    /// Forgets how it ended. It must have ended, and the caller must be its only owner.
    void use_again() noexcept;
};

/// Returns the request for `from`: that of `last`, the last one of its name or null, if it repeats it.
shared_request request_of(single_allreduce const& from, pending_ptr const& last);

/// Returns what to submit next under a name: the last request itself if nobody else has it any more. It is then the last one.
pending_ptr next_after(pending_ptr& last, shared_request what);

// The inside of a prepared group: its request and where its tensors lie.

struct prepared {
    shared_request what;
    int set = 0;
    std::shared_ptr<std::vector<tensor_io> const> tensors;
    std::size_t bytes = 0;
    bool on_device = false;  ///< some of the tensors
};

// A name table finds the last request of each name.

/// Keeps the last request under each name of each process set, also after its end: in the steady state a name, its request and
/// its place in the cache are used again without new memory. It forgets names that do not come back. Not thread safe.
class name_table {
  public:
    /// Returns the place of the last request under this name, which holds null if there was no request.
    pending_ptr& last(int set, std::string_view name);

    /// Forgets a removed set.
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
        std::size_t room = 4096;  // at this number of names those that have not come back are removed
        exchange_clock::time_point last_sweep{};
    };
    static void sweep(names_of_set& names);

    std::vector<names_of_set> by_set_;
};

// Call checks find wrong arguments of an exchange's call, on this rank alone.

/// Returns what is wrong with tensors, numbers and root of a request on a set of `ranks`, `rank` being this one there; or "".
/// Pure.
std::string fault_of(pending_request const& what, int ranks, int rank);

/// The same for an allreduce of one tensor.
std::string fault_of(single_allreduce const& what);

}  // namespace muster::detail
