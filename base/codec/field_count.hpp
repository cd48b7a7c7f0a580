// The number of members of a struct, known while compiling, by which a list of its members that is kept by hand is seen to be whole.
#pragma once

#include <cstddef>
#include <type_traits>

namespace muster {

namespace detail {

/// Stands for a value of any type, in expressions that are never evaluated.
struct any_value {
    template <typename T>
    operator T() const;
};

template <typename T, typename... Values>
consteval std::size_t count_fields() {
    if constexpr (requires { T{Values{}..., any_value{}}; })
        return count_fields<T, Values..., any_value>();
    else
        return sizeof...(Values);
}

}  // namespace detail

/// Counts the members of an aggregate without base classes and arrays; a member that is a struct counts once.
template <typename T>
requires std::is_aggregate_v<T>
inline constexpr std::size_t field_count = detail::count_fields<std::remove_cv_t<T>>();

}  // namespace muster
