// The view of a tensor: elements of one type in memory that the caller owns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "comm/tensor/half.hpp"

namespace muster {

/// The last three are only for an exchange, which does not add them up (is_only_moved).
enum class dtype : std::uint8_t { f32, f64, f16, bf16, i32, i64, u8, i8, boolean, i16, u16 };

/// Returns the bytes of one element.
std::size_t size_of(dtype type) noexcept;
std::string_view to_string(dtype type) noexcept;
constexpr bool is_floating(dtype type) noexcept {
    return type == dtype::f32 || type == dtype::f64 || type == dtype::f16 || type == dtype::bf16;
}
/// Returns whether elements are gathered, broadcast and sent, as their bytes, but not reduced.
constexpr bool is_only_moved(dtype type) noexcept {
    return type == dtype::boolean || type == dtype::i16 || type == dtype::u16;
}

/// A reduction makes one element of the elements of all ranks.
/// - Sums and products of integers wrap around (modulo 2^bits).
/// - `average` is the sum divided by the number of ranks; integers are refused, since their average is not an integer and
///   their sum may have wrapped: reduce the sum, or convert. In worlds above comm_options::direct_ranks MPI adds f16 first,
///   so a sum beyond 65,504 overflows.
/// - `min` and `max` of floating types: if any rank's element is NaN, the result is NaN.
/// - `adasum` (comm/gradients/adasum.hpp) is only for exchange::allreduce; a communicator refuses it (errc::usage).
enum class reduction : std::uint8_t { sum, average, min, max, product, adasum };
std::string_view to_string(reduction how) noexcept;

/// Factors around a reduction: result = after * reduce(before * in of every rank). For floating types only, in the precision in
/// which they are accumulated (f16 and bf16 in float); both finite. With `average` the division by the number of ranks comes
/// between the two. The same on all ranks.
struct scaling {
    double before = 1;
    double after = 1;

    bool is_one() const noexcept { return before == 1 && after == 1; }
    bool operator==(scaling const&) const = default;
};

enum class memory_kind : std::uint8_t { host, device };
std::string_view to_string(memory_kind where) noexcept;

/// `count` elements from `data` on. Owns nothing; `data` may be null if `count` is 0.
struct tensor_view {
    void* data = nullptr;
    std::size_t count = 0;
    dtype type = dtype::f32;
    memory_kind where = memory_kind::host;

    std::size_t bytes() const noexcept { return count * size_of(type); }
    bool operator==(tensor_view const&) const = default;
};

/// Elements `first` … `first + count - 1` of a tensor.
struct element_range {
    std::size_t first = 0;
    std::size_t count = 0;
    bool operator==(element_range const&) const = default;
};

/// Returns the elements, of `count`, that belong to `rank` of `ranks` in a reducescatter: count / ranks, rounded down, and one
/// more for the first (count % ranks) ranks; in the order of the ranks. Pure.
element_range share_of(std::size_t count, int ranks, int rank) noexcept;

/// Returns these elements of a tensor, which must have them.
tensor_view part_of(tensor_view const& whole, element_range const& part) noexcept;

template <typename T>
consteval dtype dtype_of() {
    if constexpr (std::is_same_v<T, float>)
        return dtype::f32;
    else if constexpr (std::is_same_v<T, double>)
        return dtype::f64;
    else if constexpr (std::is_same_v<T, half>)
        return dtype::f16;
    else if constexpr (std::is_same_v<T, bfloat16>)
        return dtype::bf16;
    else if constexpr (std::is_same_v<T, std::int32_t>)
        return dtype::i32;
    else if constexpr (std::is_same_v<T, std::int64_t>)
        return dtype::i64;
    else if constexpr (std::is_same_v<T, std::uint8_t>)
        return dtype::u8;
    else {
        static_assert(std::is_same_v<T, std::int8_t>,
                      "a tensor holds float, double, half, bfloat16, int32_t, int64_t, uint8_t or int8_t");
        return dtype::i8;
    }
}

/// Returns the elements as a tensor in host memory. Takes whatever converts to a span: view_of(std::span(vector)).
template <typename T, std::size_t Extent>
tensor_view view_of(std::span<T, Extent> elements) noexcept {
    static_assert(!std::is_const_v<T>, "collectives write through views; use input_of for what is only read");
    return {elements.data(), elements.size(), dtype_of<T>(), memory_kind::host};
}

/// Returns a view for the `in` argument of a collective, which is only read.
template <typename T, std::size_t Extent>
tensor_view input_of(std::span<T const, Extent> elements) noexcept {
    return {const_cast<T*>(elements.data()), elements.size(), dtype_of<T>(), memory_kind::host};
}

}  // namespace muster
