// Calls of the C interface: errors become codes, C's structs become C++'s.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "base/c_api/c_struct.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/c_api/handle_table.hpp"
#include "comm/c_api/muster_comm.h"
#include "comm/exchange/exchange.hpp"
#include "comm/exchange/prepared_group.hpp"

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

/// What this thread's last call that failed has left.
struct last_failure {
    std::string message;
    std::vector<int> ranks;
};
last_failure const& last() noexcept;

/// Remembers it and returns `code`.
int failed(int code, char const* message, std::vector<int> ranks = {}) noexcept;

/// The code of the exception that is being handled, remembered.
int code_of_current() noexcept;

/// No exception leaves this.
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

/// Communicators, handles and groups: C has their numbers.
template <typename T>
concept numbered = std::same_as<T, muster_comm> || std::same_as<T, muster_handle> || std::same_as<T, muster_group>;

template <numbered T>
handle_table<T>& table() {
    static auto* const all = new handle_table<T>;  // never destroyed: threads of the program may come after main
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

/// A struct of an older caller is shorter: the rest is zero.
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
/// `own_size`: the output has a size of its own.
tensor_parts parts_of(muster_tensor const* given, bool own_size);

/// The elements of an array, each as long as it says; `own_size` as above.
std::vector<named_tensor> tensors_of(muster_tensor const* tensors, std::size_t count, bool own_size = false);

reduction reduction_of(int how);

/// Throws errc::usage for what is no list.
std::span<int const> list_of(int const* ranks, int count);

inline void give(muster_handle** to, exchange_handle handle) {
    need(to, "the place for the handle");
    *to = table<muster_handle>().add(std::move(handle));
}

/// For calls that have no code to return.
template <numbered T>
bool is_usable(T const* given) noexcept {
    return table<T>().find(given) != nullptr;
}

/// Null is freed too, and nothing done.
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

}  // namespace muster::c_api
