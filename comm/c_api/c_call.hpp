// Calls of the C interface: errors become codes, C's structs become C++'s.
#pragma once

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/c_api/c_struct.hpp"
#include "base/environment.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/deadlines.hpp"
#include "comm/c_api/muster_comm.h"
#include "comm/exchange/exchange.hpp"
#include "comm/exchange/exchange_handle.hpp"
#include "comm/membership/member_link.hpp"

struct muster_comm {
    muster::exchange exchange;
    muster_comm(muster::identity const& who, muster::exchange_options const& options) : exchange(who, options) {}
};

struct muster_handle {
    muster::exchange_handle handle;
};

struct muster_group {
    muster::prepared_group group;
};

namespace muster::c_api {

/// Owns objects of a type that C knows by pointers to an incomplete one. Such a pointer holds the object's place and how often that place was taken; it is
/// never followed. Thread safe, except that an object must not be freed while another thread uses it. Only the table's destructor frees the places.
template <typename T>
class handle_table {
  public:
    handle_table() = default;
    handle_table(handle_table const&) = delete;
    handle_table& operator=(handle_table const&) = delete;
    /// Destroys what was not freed.
    ~handle_table() {
        for (std::size_t made = 0; made < blocks_made_; ++made) {
            std::unique_ptr<slot[]> const block(blocks_[made].load());
            for (std::size_t i = 0; i < per_block; ++i)
                if (block[i].turn.load() % 2 == 1) std::launder(reinterpret_cast<T*>(block[i].storage))->~T();
        }
    }

    /// Adds an object. Throws std::bad_alloc, also beyond `most` of them.
    template <typename... Args>
    T* add(Args&&... args) {
        std::scoped_lock const guard(lock_);
        if (free_.empty()) grow();
        std::size_t const at = free_.back();
        slot& in = at_place(at);
        ::new (in.storage) T{std::forward<Args>(args)...};
        free_.pop_back();
        auto const turn = in.turn.load(std::memory_order_relaxed) + 1;  // odd: taken
        in.turn.store(turn, std::memory_order_release);
        return reinterpret_cast<T*>((std::uintptr_t{turn} << 32) | (at + 1));
    }

    /// Returns null for a number that was never given out or was freed.
    T* find(T const* number) const noexcept {
        auto const bits = reinterpret_cast<std::uintptr_t>(number);
        std::size_t const at = (bits & 0xffffffff) - 1;
        if (at >= most) return nullptr;
        slot* const block = blocks_[at / per_block].load(std::memory_order_acquire);
        if (block == nullptr) return nullptr;
        slot& in = block[at % per_block];
        auto const turn = in.turn.load(std::memory_order_acquire);
        return turn % 2 == 1 && turn == bits >> 32 ? std::launder(reinterpret_cast<T*>(in.storage)) : nullptr;
    }

    /// Destroys the object, which find() has found, without the table's lock; nobody may use its number any more.
    void remove(T const* number) noexcept {
        T* const object = find(number);
        std::size_t const at = (reinterpret_cast<std::uintptr_t>(number) & 0xffffffff) - 1;
        at_place(at).turn.fetch_add(1, std::memory_order_acq_rel);
        object->~T();
        std::scoped_lock const guard(lock_);
        free_.push_back(at);  // room was made in grow()
    }

    static constexpr std::size_t most = 1 << 20;

  private:
    static constexpr std::size_t per_block = 256;
    struct slot {
        std::atomic<std::uint32_t> turn{0};
        alignas(T) std::byte storage[sizeof(T)];
    };

    slot& at_place(std::size_t at) const noexcept {
        return blocks_[at / per_block].load(std::memory_order_acquire)[at % per_block];
    }

    void grow() {
        if (blocks_made_ == blocks_.size()) throw std::bad_alloc();
        free_.reserve((blocks_made_ + 1) * per_block);
        auto block = std::make_unique<slot[]>(per_block);
        for (std::size_t i = per_block; i-- > 0;) free_.push_back(blocks_made_ * per_block + i);
        blocks_[blocks_made_++].store(block.release(), std::memory_order_release);
    }

    std::mutex lock_;
    std::array<std::atomic<slot*>, most / per_block> blocks_{};
    std::size_t blocks_made_ = 0;
    std::vector<std::size_t> free_;
};

/// The message and ranks of this thread's last failed call.
struct last_failure {
    std::string message;
    std::vector<int> ranks;
};
last_failure const& last() noexcept;

/// Keeps the failure and returns `code`.
int failed(int code, char const* message, std::vector<int> ranks = {}) noexcept;

/// Keeps the exception that is being handled and returns its code.
int code_of_current() noexcept;

/// Runs `body` and returns its code; no exception leaves it.
template <typename Body>
int guarded(Body&& body) noexcept {
    try {
        body();
        return MUSTER_OK;
    } catch (...) {
        return code_of_current();
    }
}

[[noreturn]] void refuse(std::string const& what);

/// C has the numbers of communicators, handles and groups.
template <typename T>
concept numbered = std::same_as<T, muster_comm> || std::same_as<T, muster_handle> || std::same_as<T, muster_group>;

template <numbered T>
handle_table<T>& table() {
    static auto* const all = new handle_table<T>;  // never destroyed: threads of the program may outlive main
    return *all;
}

template <typename T>
T& need(T* given, char const* what) {
    if (given == nullptr) refuse(fmt::format("{} is null", what));
    if constexpr (numbered<std::remove_const_t<T>>) {
        T* const found = table<std::remove_const_t<T>>().find(given);
        if (found == nullptr) refuse(fmt::format("{} has ended already; use it before it is freed", what));
        return *found;
    } else {
        return *given;
    }
}

/// Copies a struct. An older caller's is shorter: the rest is zero.
template <typename T>
T whole(T const* given, char const* what) {
    return whole_c_struct(given, what, MUSTER_COMM_ABI);
}

struct call_parts {
    exchange_call call;
    int root = 0;
    std::int64_t const* splits = nullptr;
};
call_parts parts_of(muster_call const* given);

struct tensor_parts {
    std::string_view name;
    tensor_view in, out;
    tensor_shape shape;
};
/// `own_size`: the output has a separate size.
tensor_parts parts_of(muster_tensor const* given, bool own_size);

/// Returns the elements of an array, each as long as it says; `own_size` as above.
std::vector<named_tensor> tensors_of(muster_tensor const* tensors, std::size_t count, bool own_size = false);

reduction reduction_of(int how);

/// Copies the text with its zero if it fits. `size` is the room, and then the size of the text.
void copy_text(std::string const& text, char* buffer, std::size_t& size);

/// Throws errc::usage for an invalid list.
std::span<int const> list_of(int const* ranks, int count);

inline void give(muster_handle** to, exchange_handle handle) {
    need(to, "the place for the handle");
    *to = table<muster_handle>().add(std::move(handle));
}

/// Says whether an object may be used, in calls that return no code.
template <numbered T>
bool is_usable(T const* given) noexcept {
    return table<T>().find(given) != nullptr;
}

/// Destroys an object; does nothing for null.
template <numbered T>
void destroy(T* given, char const* what) {
    if (given == nullptr) return;
    need(given, what);
    table<T>().remove(given);
}

inline exchange& of(muster_comm* comm) {
    return need(comm, "the communicator").exchange;
}
inline exchange const& of(muster_comm const* comm) {
    return need(comm, "the communicator").exchange;
}

// The identity of this process as a rank, for the C interface: from its variables, and in an elastic run from the launcher.

/// The setting with which a communicator is made. `variables` are NAME=VALUE, end with a null, and precede those of the environment; if they name
/// another world (MUSTER_NSPACE), the launcher's messages do not concern it.
class rank_setting {
  public:
    explicit rank_setting(char const* const* variables = nullptr);

    environment variables() const;  ///< with this rank's place in the present generation
    member_link* link() const noexcept { return link_; }
    /// Returns null outside of an elastic run.
    std::shared_ptr<peer_loss> watch(std::span<int const> members = {}) const;

  private:
    environment inherited_, given_;
    member_link* link_ = nullptr;
};

/// Returns where this process listens for ranks on other nodes, by the interface that `variables` name (GLOO_SOCKET_IFNAME). Throws as
/// tcp_address().
std::string own_address(std::string const& host, environment const& variables);

/// Makes the communicator of all ranks; in an elastic run, if some are lost meanwhile, that of the next generation.
muster_comm* join_world(rank_setting const& setting);

}  // namespace muster::c_api
