// Structs of a C interface: reads those of callers that were compiled for an older or a newer version, and fills theirs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace muster {

/// Throws unless a struct of `given` bytes at `at` can be read as one of `known`: shorter is an older caller's, longer a newer one's,
/// who must not have set what this version does not know. `what` names it, `abi` is this version's number. errc::usage,
/// errc::unavailable.
void check_c_struct(void const* at, std::size_t given, std::size_t known, char const* what, int abi);

/// Throws errc::usage unless `given` is a size that a struct of a C interface can have.
void check_c_size(std::size_t given, char const* what);

/// The struct, which begins with its size: of an older caller the rest is zero, of a null all is.
template <typename T>
T whole_c_struct(T const* given, char const* what, int abi) {
    T copy{};
    if (given == nullptr) return copy;
    check_c_struct(given, given->struct_size, sizeof copy, what, abi);
    std::memcpy(&copy, given, std::min(sizeof copy, given->struct_size));
    return copy;
}

/// Gives the caller as much of a result as its struct has room for.
template <typename T>
void give_c_struct(T result, T& into, char const* what) {
    std::size_t const size = into.struct_size;
    check_c_size(size, what);
    result.struct_size = size;
    std::memcpy(&into, &result, std::min(sizeof result, size));
}

}  // namespace muster
