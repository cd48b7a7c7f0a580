// The owners of what must live on: until the process ends, or until no rank of a failed world can use it any more.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

namespace muster::detail {

struct kept_object {
    kept_object* next = nullptr;
    virtual ~kept_object() = default;
};

template <typename T>
struct kept_value final : kept_object {
    explicit kept_value(T&& given) : value(std::move(given)) {}
    T value;
};

/// The list makes what is kept reachable, so that leak checkers do not report it.
inline std::atomic<kept_object*> kept_objects{nullptr};

/// Takes over `what` and never destroys it: memory that the device, the network or a thread may still use. Thread safe.
template <typename T>
void keep_forever(T&& what) noexcept {
    static_assert(!std::is_lvalue_reference_v<T>, "give it away: std::move");
    kept_object* const made = new kept_value<std::remove_cv_t<T>>(std::move(what));
    made->next = kept_objects.load(std::memory_order_relaxed);
    while (!kept_objects.compare_exchange_weak(made->next, made, std::memory_order_release, std::memory_order_relaxed)) {
    }
}

/// The remains of failed worlds, of this generation and of the one before. They are never destroyed, so they outlive all other objects.
struct world_remains {
    std::mutex guard;
    std::vector<std::unique_ptr<kept_object>> now, before;
};
inline world_remains& remains() {
    static auto* const made = new world_remains;
    return *made;
}

/// Takes over `what`: memory that late ranks of a failed world may still read or write. Thread safe.
template <typename T>
void keep_while_ranks_are_late(T&& what) noexcept {
    static_assert(!std::is_lvalue_reference_v<T>, "give it away: std::move");
    auto made = std::make_unique<kept_value<std::remove_cv_t<T>>>(std::move(what));
    auto& all = remains();
    std::scoped_lock const lock(all.guard);
    all.now.push_back(std::move(made));
}

/// Destroys what was kept before the previous generation began: a new one begins, so every remaining rank has left the world of the previous one. What was
/// kept since then may belong to another communicator that is about to end. Thread safe.
inline void release_remains() noexcept {
    std::vector<std::unique_ptr<kept_object>> gone;  // destroyed outside the lock
    auto& all = remains();
    std::scoped_lock const lock(all.guard);
    gone = std::exchange(all.before, std::exchange(all.now, {}));
}

}  // namespace muster::detail
