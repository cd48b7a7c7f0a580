// The schedules of all collectives over TCP, by kind, size and number of ranks.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>

#include "comm/backend/collective_backend.hpp"
#include "comm/tcp/line.hpp"
#include "comm/tcp/world.hpp"

namespace muster::tcp {

// A schedule runs a collective as a coroutine: it posts messages, and goes on when they are through.

/// `co_await counts` suspends it until all messages of `counts` are through, and `co_await` of another schedule until that has ended. Move-only;
/// not thread safe.
class schedule {
  public:
    struct promise_type {
        transfers const* awaited = nullptr;
        schedule* inner = nullptr;
        std::exception_ptr failure;

        schedule get_return_object() noexcept { return schedule(std::coroutine_handle<promise_type>::from_promise(*this)); }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        std::suspend_always final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() noexcept { failure = std::current_exception(); }

        struct wait {
            transfers const& counts;
            bool await_ready() const noexcept { return counts.through(); }
            void await_suspend(std::coroutine_handle<promise_type> of) const noexcept { of.promise().awaited = &counts; }
            void await_resume() const noexcept {}
        };
        wait await_transform(transfers const& counts) const noexcept { return {counts}; }

        struct course_of_inner;
        course_of_inner await_transform(schedule other) const noexcept;
    };

    schedule() noexcept = default;
    schedule(schedule&& other) noexcept : course_(std::exchange(other.course_, nullptr)) {}
    schedule& operator=(schedule&& other) noexcept {
        std::swap(course_, other.course_);
        return *this;
    }
    schedule(schedule const&) = delete;
    schedule& operator=(schedule const&) = delete;
    ~schedule() {
        if (course_) course_.destroy();
    }

    /// Goes on as far as it can; returns whether it has ended. Throws what the coroutine throws.
    bool advance() {
        while (!course_.done()) {
            auto& promise = course_.promise();
            if (promise.awaited != nullptr && !promise.awaited->through()) return false;
            if (promise.inner != nullptr && !promise.inner->advance()) return false;
            promise.awaited = nullptr;
            promise.inner = nullptr;
            course_.resume();
        }
        if (course_.promise().failure) std::rethrow_exception(course_.promise().failure);
        return true;
    }

  private:
    explicit schedule(std::coroutine_handle<promise_type> course) noexcept : course_(course) {}
    std::coroutine_handle<promise_type> course_;
};

struct schedule::promise_type::course_of_inner {
    schedule inner;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<promise_type> of) noexcept { of.promise().inner = &inner; }
    void await_resume() const noexcept {}
};

inline auto schedule::promise_type::await_transform(schedule other) const noexcept -> course_of_inner {
    return {std::move(other)};
}

/// One collective under way. Lives until its schedule has ended.
struct job {
    ticket owner = 0;
    std::uint32_t sequence = 0;  ///< among the collectives of this world, or the sendrecvs of these two ranks
    collective what;
    bool posted = false;  ///< the schedule sets it when it gives no more messages, so that the next collective may give its own
};

/// Every rank gives its messages to every other rank in an order that follows from the arguments alone.
///
/// In worlds of up to direct_ranks ranks each rank exchanges with each: a small allreduce in one round of whole tensors, a larger one, and every
/// reducescatter, in segments of which each rank reduces a part. Elements are combined in the order of the ranks, as by shm and by mpi, bit for bit.
/// In larger worlds small allreduces go by recursive doubling, and large ones, reducescatters and allgathers in a ring: the order of combination
/// depends only on the ranks' numbers, and f16 and bf16 are rounded at each step. Small broadcasts go down a tree of ranks, others from rank to rank
/// in segments. Alltoall and sendrecv exchange with each peer directly.
///
/// `of` stays where it is until the schedule has ended or is destroyed; then the world may hold no message of it any more
/// (world::give_up).
schedule schedule_of(world& among, job& of);

// The schedules of one family each.

/// Returns a header that says what this rank takes part in; `count` and `bytes` are those of the message if each has its own.
frame head_of(job const& of, std::size_t count, std::size_t bytes, unsigned step = 0);
schedule reduce_directly(world& among, job& of);
schedule reduce_by_doubling(world& among, job& of);
schedule reduce_in_a_ring(world& among, job& of);
schedule gather_in_a_ring(world& among, job& of);
schedule exchange_pairwise(world& among, job& of);
schedule broadcast_down_a_tree(world& among, job& of);
schedule broadcast_in_a_chain(world& among, job& of);

inline std::byte* element_at(tensor_view const& of, std::size_t element) noexcept {
    return static_cast<std::byte*>(of.data) + element * size_of(of.type);
}

/// Scratch memory of one schedule.
class scratch {
  public:
    scratch(world& among, std::size_t bytes) : memory_(among.scratch()), piece_(memory_.take(bytes)) {}
    ~scratch() {
        try {
            memory_.put_back(std::move(piece_));
        } catch (...) {  // the piece is freed
        }
    }
    scratch(scratch const&) = delete;
    scratch& operator=(scratch const&) = delete;
    std::byte* at(std::size_t offset) const noexcept { return piece_.bytes.get() + offset; }

  private:
    scratch_memory& memory_;
    scratch_memory::piece piece_;
};

}  // namespace muster::tcp
