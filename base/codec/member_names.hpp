// The names of a struct's members, as its declaration has them.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/codec/members.hpp"

namespace muster {

namespace detail {

template <typename T>
struct named {
    T value;
};
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
template <typename T>
extern named<T> const never_defined;  // only places of its members are named

/// Clang takes the address of a member as an argument of a template only within a struct.
template <typename Member>
struct place {
    Member const* at;
};
template <typename Member>
place(Member const*) -> place<Member>;

/// Compilers end with "…::rank_sample::user_s)}]" or "….value.user_s}]" for a member.
template <place M>
consteval auto name_of_place() {
    std::string_view name = __PRETTY_FUNCTION__;
    name = name.substr(0, name.find_last_not_of(")}]") + 1);
    return name.substr(name.find_last_of(".:") + 1);
}

template <typename T>
inline constexpr auto names = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<std::string_view, sizeof...(I)>{
        name_of_place<place{&std::get<I>(members_of(never_defined<T>.value))}>()...};
}
(std::make_index_sequence<field_count<T>>());
#ifdef __clang__
#pragma clang diagnostic pop
#endif

}  // namespace detail

/// Calls `take(name, member)` for each member of the struct, in their order.
template <typename T, typename Take>
void for_each_member(T& of, Take const& take) {
    std::apply(
        [&](auto&... member) {
            std::size_t at = 0;
            (take(detail::names<std::remove_const_t<T>>[at++], member), ...);
        },
        members_of(of));
}

}  // namespace muster
