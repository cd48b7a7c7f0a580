// Calls of the C interface for datasets: turns errors into codes and reads structs of other versions.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

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

/// Throws unless a struct of `given` bytes at `at` can be read as one of `known`: a longer one must not have set what is unknown.
void check_size(void const* at, std::size_t given, std::size_t known, char const* what);

/// A struct of an older caller is shorter: the rest is zero. Null is all zero.
template <typename T>
T whole(T const* given, char const* what) {
    T copy{};
    if (given == nullptr) return copy;
    check_size(given, given->struct_size, sizeof copy, what);
    std::memcpy(&copy, given, std::min(sizeof copy, given->struct_size));
    return copy;
}

/// Gives the caller as much of a result as its struct has room for.
template <typename T>
void give(T result, T* into, char const* what) {
    std::size_t const size = need(into, what).struct_size;
    if (size < sizeof(std::size_t) || size > std::size_t{1} << 16)
        throw error(errc::usage, fmt::format("{} says that it has {} bytes; set struct_size to its sizeof", what, size));
    result.struct_size = size;
    std::memcpy(into, &result, std::min(sizeof result, size));
}

}  // namespace muster::io_api
