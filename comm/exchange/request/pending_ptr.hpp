// A counted pointer shares a request that is under way.
#pragma once

#include <cstddef>
#include <utility>

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

}  // namespace muster::detail
