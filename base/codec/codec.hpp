// A codec turns structs into bytes and back. It writes and reads every member, so that none can be forgotten.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/codec/members.hpp"
#include "base/environment.hpp"
#include "base/units.hpp"

/// Numbers are little-endian and have their type's size; a boolean is a byte, an enumerator its number. A text, a list and an environment begin with the
/// number of what follows (four bytes), an array does not, an optional with a boolean, a variant with the number of its alternative (one byte). A struct is its members in
/// order. The format is private to programs of one version of muster.
namespace muster::codec {

/// Writes and reads a type in another way: specialise it with `least_bytes`, `write(writer&, value)` and `read(reader&, value&)`.
template <typename T>
struct form {};

// They throw errc::invalid_data, and say why bytes cannot be read.

[[noreturn]] void fail_by_end(std::size_t wanted, std::size_t left);
[[noreturn]] void fail_by_count(std::size_t items, std::size_t left);
[[noreturn]] void fail_by_value(std::uint64_t value);
[[noreturn]] void fail_by_rest(std::size_t left);

namespace detail {

template <typename T, template <typename...> typename Of>
inline constexpr bool is_a = false;
template <typename... T, template <typename...> typename Of>
inline constexpr bool is_a<Of<T...>, Of> = true;

template <typename T>
inline constexpr bool is_text = std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>;
template <typename T>
inline constexpr bool is_list = is_a<T, std::vector>;
template <typename T>
inline constexpr bool is_list<std::span<T>> = true;
template <typename T>
inline constexpr bool is_array = false;
template <typename T, std::size_t N>
inline constexpr bool is_array<std::array<T, N>> = true;

template <typename T>
inline constexpr bool is_number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
/// Numbers of such a type are copied all at once.
template <typename T>
inline constexpr bool is_copied = is_number<T>&& std::endian::native == std::endian::little;

/// Compilers write "V = muster::dtype::f32" for an enumerator, and "V = (muster::dtype)99" for another value.
template <auto V>
consteval bool is_enumerator() {
    constexpr std::string_view name = __PRETTY_FUNCTION__;
    return name[name.rfind("V = ") + 4] != '(';
}
/// The enumerators of `E` as bits; they are below 64.
template <typename E>
inline constexpr std::uint64_t enumerators = []<std::size_t... I>(std::index_sequence<I...>) {
    return ((std::uint64_t{is_enumerator<static_cast<E>(I)>()} << I) | ...);
}
(std::make_index_sequence<64>());

template <typename Tuple>
inline constexpr std::size_t least_of_all = 0;

/// The fewest bytes that a value takes: so many items at most can follow.
template <typename T>
consteval std::size_t least() {
    if constexpr (requires { form<T>::least_bytes; })
        return form<T>::least_bytes;
    else if constexpr (std::is_same_v<T, bool> || is_a<T, std::optional> || is_a<T, std::variant>)
        return 1;
    else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
        return sizeof(T);
    else if constexpr (std::is_same_v<T, duration>)
        return sizeof(double);
    else if constexpr (is_array<T>)
        return std::tuple_size_v<T> * least<typename T::value_type>();
    else if constexpr (is_text<T> || is_a<T, std::vector> || std::is_same_v<T, environment>)
        return sizeof(std::uint32_t);
    else
        return least_of_all<decltype(members_of(std::declval<T&>()))>;
}
template <typename... T>
inline constexpr std::size_t least_of_all<std::tuple<T&...>> = (std::size_t{0} + ... + least<T>());

}  // namespace detail

/// The fewest bytes that a value of each takes: all that it takes, where neither texts nor lists are in it.
template <typename... T>
inline constexpr std::size_t least_bytes = (std::size_t{0} + ... + detail::least<std::remove_const_t<T>>());

/// Sinks: one counts the bytes, the other writes them where so many are free.
struct byte_counter {
    std::size_t bytes = 0;
    void put(void const*, std::size_t size) noexcept { bytes += size; }
};
struct byte_cursor {
    std::byte* at = nullptr;
    void put(void const* from, std::size_t size) noexcept {
        if (size != 0) std::memcpy(at, from, size);
        at += size;
    }
};

/// Writes values into a sink.
template <typename Sink>
class writer {
  public:
    explicit writer(Sink to) noexcept : to_(to) {}
    Sink const& sink() const noexcept { return to_; }

    template <typename T>
    writer& operator<<(T const& value) {
        if constexpr (requires { form<T>::least_bytes; })
            form<T>::write(*this, value);
        else if constexpr (std::is_same_v<T, bool>)
            number(static_cast<std::uint8_t>(value ? 1 : 0));
        else if constexpr (std::is_enum_v<T>)
            number(static_cast<std::underlying_type_t<T>>(value));
        else if constexpr (std::is_arithmetic_v<T>)
            number(value);
        else if constexpr (std::is_same_v<T, duration>)
            number(value.count());
        else if constexpr (detail::is_text<T>)
            text(value);
        else if constexpr (detail::is_list<T>)
            list(std::span(value));
        else if constexpr (detail::is_array<T>)
            for (auto const& each : value) *this << each;
        else if constexpr (detail::is_a<T, std::optional>)
            option(value);
        else if constexpr (detail::is_a<T, std::variant>)
            alternative(value);
        else if constexpr (std::is_same_v<T, environment>)
            variables(value);
        else
            std::apply([this](auto const&... member) { static_cast<void>((*this << ... << member)); }, members_of(value));
        return *this;
    }

  private:
    template <typename T>
    void number(T value) {
        if constexpr (std::endian::native == std::endian::big)
            std::reverse(reinterpret_cast<char*>(&value), reinterpret_cast<char*>(&value) + sizeof value);
        to_.put(&value, sizeof value);
    }
    void count(std::size_t items) {
        if (items > std::numeric_limits<std::uint32_t>::max()) fail_by_value(items);
        number(static_cast<std::uint32_t>(items));
    }
    void text(std::string_view value) {
        count(value.size());
        to_.put(value.data(), value.size());
    }
    template <typename T>
    void list(std::span<T const> items) {
        count(items.size());
        if constexpr (detail::is_copied<T>)
            to_.put(items.data(), items.size_bytes());
        else
            for (T const& each : items) *this << each;
    }
    template <typename T>
    void option(std::optional<T> const& value) {
        *this << value.has_value();
        if (value) *this << *value;
    }
    template <typename... T>
    void alternative(std::variant<T...> const& value) {
        static_assert(sizeof...(T) <= 256);
        number(static_cast<std::uint8_t>(value.index()));
        std::visit([this](auto const& content) { *this << content; }, value);
    }
    void variables(environment const& value) {
        count(value.size());
        for (auto const& [name, content] : value) *this << name << content;
    }
    Sink to_;
};

/// Returns the values, one after the other, as `Bytes`: a string or a vector of bytes.
template <typename Bytes = std::string, typename... T>
Bytes encode(T const&... values) {
    writer<byte_counter> counts{{}};
    (counts << ... << values);
    Bytes bytes(counts.sink().bytes, {});
    writer<byte_cursor> writes{{reinterpret_cast<std::byte*>(bytes.data())}};
    (writes << ... << values);
    return bytes;
}

/// Writes the values to where there are at least so many bytes: for types whose values all take the same.
template <typename... T>
void encode_to(std::span<std::byte> to, T const&... values) {
    writer<byte_cursor> writes{{to.data()}};
    (writes << ... << values);
}

/// Reads what a writer has written. Throws errc::invalid_data, which says why, where the bytes are something else.
class reader {
  public:
    explicit reader(std::span<std::byte const> bytes) noexcept : bytes_(bytes) {}
    explicit reader(std::string_view bytes) noexcept : reader(std::as_bytes(std::span(bytes))) {}

    template <typename T>
    reader& operator>>(T& value) {
        if constexpr (requires { form<T>::least_bytes; })
            form<T>::read(*this, value);
        else if constexpr (std::is_same_v<T, bool>)
            value = one_of<std::uint8_t>(3) != 0;
        else if constexpr (std::is_enum_v<T>)
            value = static_cast<T>(one_of<std::underlying_type_t<T>>(detail::enumerators<T>));
        else if constexpr (std::is_arithmetic_v<T>)
            value = get<T>();
        else if constexpr (std::is_same_v<T, duration>)
            value = duration(get<double>());
        else if constexpr (detail::is_text<T>)
            text(value);
        else if constexpr (detail::is_a<T, std::vector>)
            list(value);
        else if constexpr (detail::is_array<T>)
            for (auto& each : value) *this >> each;
        else if constexpr (detail::is_a<T, std::optional>)
            option(value);
        else if constexpr (detail::is_a<T, std::variant>)
            alternative(value);
        else if constexpr (std::is_same_v<T, environment>)
            variables(value);
        else
            std::apply([this](auto&... member) { static_cast<void>((*this >> ... >> member)); }, members_of(value));
        return *this;
    }
    /// Returns the next number.
    template <typename T>
    T get() {
        static_assert(detail::is_number<T>);
        T value;
        std::memcpy(&value, take(sizeof value), sizeof value);
        if constexpr (std::endian::native == std::endian::big)
            std::reverse(reinterpret_cast<char*>(&value), reinterpret_cast<char*>(&value) + sizeof value);
        return value;
    }
    /// Throws errc::invalid_data if bytes are left.
    void end() const {
        if (!bytes_.empty()) fail_by_rest(bytes_.size());
    }

  private:
    std::byte const* take(std::size_t size) {
        if (size > bytes_.size()) fail_by_end(size, bytes_.size());
        std::byte const* const from = bytes_.data();
        bytes_ = bytes_.subspan(size);
        return from;
    }
    /// Reads a number whose bit is set in `known`.
    template <typename T>
    T one_of(std::uint64_t known) {
        T const value = get<T>();
        auto const bit = static_cast<std::uint64_t>(value);
        if (bit >= 64 || ((known >> bit) & 1) == 0) fail_by_value(bit);
        return value;
    }
    /// Reads a number of items, each of which takes at least `least` bytes.
    std::size_t count(std::size_t least) {
        std::size_t const items = get<std::uint32_t>();
        if (items > bytes_.size() / least) fail_by_count(items, bytes_.size());
        return items;
    }
    template <typename Text>
    void text(Text& value) {
        std::size_t const size = count(1);
        value = Text(reinterpret_cast<char const*>(take(size)), size);
    }
    template <typename T>
    void list(std::vector<T>& items) {
        static_assert(detail::least<T>() > 0, "a list of what takes no bytes may be of any length");
        items.resize(count(detail::least<T>()));
        if constexpr (detail::is_copied<T>) {
            if (!items.empty()) std::memcpy(items.data(), take(items.size() * sizeof(T)), items.size() * sizeof(T));
        } else {
            for (T& each : items) *this >> each;
        }
    }
    template <typename T>
    void option(std::optional<T>& value) {
        bool there = false;
        *this >> there;
        value.reset();
        if (there) *this >> value.emplace();
    }
    template <typename Variant, std::size_t I = 0>
    void alternative(Variant& value, std::size_t which = std::numeric_limits<std::size_t>::max()) {
        if constexpr (I == 0) which = get<std::uint8_t>();
        if constexpr (I == std::variant_size_v<Variant>) {
            fail_by_value(which);
        } else {
            if (which != I) return alternative<Variant, I + 1>(value, which);
            *this >> value.template emplace<I>();
        }
    }
    void variables(environment& value) {
        value = {};
        std::string name, content;
        for (auto left = count(2 * sizeof(std::uint32_t)); left > 0; --left) {
            *this >> name >> content;
            value.set(name, content);
        }
    }
    std::span<std::byte const> bytes_;
};

}  // namespace muster::codec
