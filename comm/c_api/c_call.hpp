// Calls of the C interface: errors become codes, C's structs become C++'s.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <new>

#include "base/c_api/c_struct.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/c_api/muster_comm.h"
#include "comm/exchange/exchange.hpp"

namespace muster::c_api {

/// A word that tells a handle in use from one that has ended, mostly: until its memory is given to another.
class life_mark {
  public:
    ~life_mark() { word_ = 0; }
    bool is_alive() const noexcept { return word_ == alive; }

  private:
    static constexpr std::uint64_t alive = 0x6d757374'65726c76u;
    std::uint64_t volatile word_ = alive;  // the last write is kept, though nobody may read it
};

}  // namespace muster::c_api

struct muster_comm {
    muster::c_api::life_mark mark;
    muster::exchange exchange;
    muster_comm(muster::identity const& who, muster::exchange_options const& options) : exchange(who, options) {}
};

struct muster_handle {
    muster::c_api::life_mark mark{};
    muster::exchange_handle handle;
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

template <typename T>
T& need(T* given, char const* what) {
    if (given == nullptr) refuse(fmt::format("{} is null", what));
    if constexpr (requires { given->mark; })
        if (!given->mark.is_alive()) refuse(fmt::format("{} has ended already; use it before it is freed", what));
    return *given;
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
    *to = new muster_handle{{}, std::move(handle)};
}

/// For calls that have no code to return.
template <typename T>
bool is_usable(T const* given) noexcept {
    return given != nullptr && given->mark.is_alive();
}

/// Null is freed too, and nothing done.
template <typename T>
void destroy(T* given, char const* what) {
    if (given != nullptr) delete &need(given, what);
}

inline exchange& of(muster_comm* comm) {
    return need(comm, "the communicator").exchange;
}
inline exchange const& of(muster_comm const* comm) {
    return need(comm, "the communicator").exchange;
}

}  // namespace muster::c_api
