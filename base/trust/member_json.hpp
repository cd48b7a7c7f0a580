// Structs as JSON: an object has each member by its name, in their order. What is read may be anything.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/codec/member_names.hpp"
#include "base/text.hpp"
#include "base/trust/foreign_json.hpp"

namespace muster {

/// Appends the value's JSON; returns whether it is more than an absent value, a text of no letter, or a struct of such members. Pure.
template <typename T>
bool append_json(std::string& to, T const& value) {
    if constexpr (std::is_same_v<T, std::string>) {
        to += json_text(nlohmann::ordered_json(value));
        return !value.empty();
    } else if constexpr (std::is_same_v<T, char>) {
        return append_json(to, std::string(1, value));
    } else if constexpr (std::is_floating_point_v<T>) {
        if (!std::isfinite(value)) return append_json(to, std::optional<T>());
        fmt::format_to(std::back_inserter(to), "{}", std::round(value * 1e4) / 1e4);
        return true;
    } else if constexpr (std::is_arithmetic_v<T>) {
        fmt::format_to(std::back_inserter(to), "{}", value);
        return true;
    } else if constexpr (requires { value.has_value(); }) {
        if (value) return append_json(to, *value);
        to += "null";
        return false;
    } else if constexpr (requires { value.begin(); }) {
        to += '[';
        for (auto const& each : value) {
            if (&each != &*value.begin()) to += ',';
            append_json(to, each);
        }
        to += ']';
        return true;
    } else {
        to += '{';
        auto const first = to.size();
        for_each_member(value, [&](std::string_view name, auto const& member) {
            auto const before = to.size();
            fmt::format_to(std::back_inserter(to), "{}\"{}\":", before == first ? "" : ",", name);
            if (!append_json(to, member)) to.resize(before);
        });
        to += '}';
        return to.size() > first + 1;
    }
}

/// Returns the struct's JSON in one line, without members that are empty. Real numbers have four digits behind the point. Members are numbers, letters, texts,
/// structs, and lists and optional values of them. Pure.
template <typename T>
std::string member_json(T const& value) {
    std::string text;
    append_json(text, value);
    return text;
}

/// Reads such JSON; leaves a value as it is where the JSON is of another type, and returns whether it is not. Texts lose their control characters, in one line;
/// numbers that are not finite, or beyond their type and 1e18, count as of another type. Pure.
template <typename T>
bool read_members(nlohmann::ordered_json const& from, T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
        if (!from.is_string()) return false;
        value = without_controls(from.get<std::string>());
        for (char& c : value)
            if (c == '\n' || c == '\t') c = ' ';
    } else if constexpr (std::is_same_v<T, char>) {
        if (!from.is_string() || from.get_ref<std::string const&>().size() != 1) return false;
        auto const letter = from.get_ref<std::string const&>().front();
        if (letter <= ' ' || letter > '~') return false;
        value = letter;
    } else if constexpr (std::is_arithmetic_v<T>) {
        constexpr double most = std::is_same_v<T, int> ? 2e9 : 1e18;
        constexpr double least = std::is_unsigned_v<T> ? 0 : std::is_same_v<T, int> ? -1 : -most;
        if (!from.is_number()) return false;
        auto const number = from.get<double>();
        if (!std::isfinite(number) || number < least || number > most) return false;
        value = from.get<T>();
    } else if constexpr (requires { value.has_value(); }) {
        typename T::value_type content{};
        if (!read_members(from, content)) return false;
        value = std::move(content);
    } else if constexpr (requires { value.begin(); }) {
        if (!from.is_array()) return false;
        for (auto const& each : from) {
            typename T::value_type row{};
            if (read_members(each, row)) value.push_back(std::move(row));
        }
    } else {
        if (!from.is_object()) return false;
        for_each_member(value, [&](std::string_view name, auto& member) {
            if (auto const found = from.find(std::string(name)); found != from.end()) read_members(*found, member);
        });
    }
    return true;
}

}  // namespace muster
