// Calls of the C interface for datasets: turns errors into codes, and reads what is given.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/c_api/c_struct.hpp"
#include "base/error.hpp"
#include "io/c_api/muster_io.h"

namespace muster::io_api {

/// The message of this thread's last call that failed.
char const* last_message() noexcept;

/// The code of the exception that is being handled, its message remembered.
int code_of_current() noexcept;

/// No exception leaves this. `body` returns nothing, or a code.
template <typename Body>
int guarded(Body&& body) noexcept {
    try {
        if constexpr (std::is_void_v<decltype(body())>) {
            body();
            return MUSTER_IO_OK;
        } else {
            return body();
        }
    } catch (...) {
        return code_of_current();
    }
}

template <typename T>
T& need(T* given, char const* what) {
    if (given == nullptr) throw error(errc::usage, fmt::format("{} is null; give one", what));
    return *given;
}

/// A struct of an older caller is shorter: the rest is zero. Null is all zero.
template <typename T>
T whole(T const* given, char const* what) {
    return whole_c_struct(given, what, MUSTER_IO_ABI);
}

/// Gives the caller as much of a result as its struct has room for.
template <typename T>
void give(T const& result, T* into, char const* what) {
    give_c_struct(result, need(into, what), what);
}

}  // namespace muster::io_api
