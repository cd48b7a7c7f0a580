// An owner of a C handle: closes it once.
#pragma once

#include <utility>

namespace muster {

/// Move-only owner of a C handle. `Traits` gives
///     using type = …;                                  the handle
///     static type null() noexcept;                     the value that owns nothing
///     static void close(type) noexcept;                releases; failures are dropped: where they lose data the class that holds
///                                                      the handle has its own throwing close(), built on `release`
/// Not thread safe. The handle is nulled before it is closed, so that nothing is closed twice.
template <typename Traits>
class unique_handle {
  public:
    using type = typename Traits::type;

    unique_handle() noexcept = default;
    explicit unique_handle(type handle) noexcept : handle_(handle) {}  ///< adopts: the caller gives up ownership
    unique_handle(unique_handle&& other) noexcept : handle_(other.release()) {}
    unique_handle& operator=(unique_handle&& other) noexcept {
        reset(other.release());
        return *this;
    }
    unique_handle(unique_handle const&) = delete;
    unique_handle& operator=(unique_handle const&) = delete;
    ~unique_handle() { reset(); }

    type get() const noexcept { return handle_; }
    explicit operator bool() const noexcept { return handle_ != Traits::null(); }

    /// Gives up ownership and returns the handle.
    [[nodiscard]] type release() noexcept { return std::exchange(handle_, Traits::null()); }

    /// Closes what is owned, if anything, and adopts `handle`.
    void reset(type handle = Traits::null()) noexcept {
        type const old = std::exchange(handle_, handle);
        if (old != Traits::null() && old != handle) Traits::close(old);
    }

  private:
    type handle_ = Traits::null();
};

}  // namespace muster
