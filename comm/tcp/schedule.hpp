// A collective's course as a coroutine: it posts messages, and goes on when they are through.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <new>
#include <utility>

#include "comm/tcp/line.hpp"

namespace muster::tcp {

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

    /// Goes on as far as it can; true at its end. Throws what it throws.
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

}  // namespace muster::tcp
