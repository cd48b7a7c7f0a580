// The owner of what must live until the process ends. Keeps memory that the device, the network or a thread may still use.
#pragma once

#include <atomic>
#include <type_traits>
#include <utility>

namespace muster::detail {

struct kept_object {
    kept_object* next = nullptr;
};

/// Reachable, so that leak checkers do not report what is kept.
inline std::atomic<kept_object*> kept_objects{nullptr};

/// Takes `what` over and never destroys it. Thread safe.
template <typename T>
void keep_forever(T&& what) noexcept {
    static_assert(!std::is_lvalue_reference_v<T>, "give it away: std::move");
    struct holder : kept_object {
        explicit holder(T&& given) : value(std::move(given)) {}
        std::remove_cv_t<T> value;
    };
    kept_object* const made = new holder(std::move(what));
    made->next = kept_objects.load(std::memory_order_relaxed);
    while (!kept_objects.compare_exchange_weak(made->next, made, std::memory_order_release, std::memory_order_relaxed)) {
    }
}

}  // namespace muster::detail
