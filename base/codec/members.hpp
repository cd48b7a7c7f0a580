// The members of a struct as a tuple of references: what is done with each of them is also done with one that is added later.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>

#include "base/codec/field_count.hpp"

namespace muster {

/// Returns references to all members, in their order. `T` is an aggregate of at most 30 members, without base classes and arrays.
template <typename T>
requires std::is_aggregate_v<T>
constexpr auto members_of([[maybe_unused]] T& of) noexcept {
    constexpr std::size_t count = field_count<T>;
    static_assert(count <= 30, "add a line below");
    // clang-format off
    if constexpr (count == 0) { return std::tuple<>(); }
#define MUSTER_MEMBERS(number, ...) else if constexpr (count == number) { auto& [__VA_ARGS__] = of; return std::tie(__VA_ARGS__); }
    MUSTER_MEMBERS(1, a)
    MUSTER_MEMBERS(2, a, b)
    MUSTER_MEMBERS(3, a, b, c)
    MUSTER_MEMBERS(4, a, b, c, d)
    MUSTER_MEMBERS(5, a, b, c, d, e)
    MUSTER_MEMBERS(6, a, b, c, d, e, f)
    MUSTER_MEMBERS(7, a, b, c, d, e, f, g)
    MUSTER_MEMBERS(8, a, b, c, d, e, f, g, h)
    MUSTER_MEMBERS(9, a, b, c, d, e, f, g, h, i)
    MUSTER_MEMBERS(10, a, b, c, d, e, f, g, h, i, j)
    MUSTER_MEMBERS(11, a, b, c, d, e, f, g, h, i, j, k)
    MUSTER_MEMBERS(12, a, b, c, d, e, f, g, h, i, j, k, l)
    MUSTER_MEMBERS(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
    MUSTER_MEMBERS(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
    MUSTER_MEMBERS(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
    MUSTER_MEMBERS(16, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
    MUSTER_MEMBERS(17, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)
    MUSTER_MEMBERS(18, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
    MUSTER_MEMBERS(19, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s)
    MUSTER_MEMBERS(20, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
    MUSTER_MEMBERS(21, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u)
    MUSTER_MEMBERS(22, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v)
    MUSTER_MEMBERS(23, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w)
    MUSTER_MEMBERS(24, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x)
    MUSTER_MEMBERS(25, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y)
    MUSTER_MEMBERS(26, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z)
    MUSTER_MEMBERS(27, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A)
    MUSTER_MEMBERS(28, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B)
    MUSTER_MEMBERS(29, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C)
    MUSTER_MEMBERS(30, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D)
#undef MUSTER_MEMBERS
    // clang-format on
}

}  // namespace muster
