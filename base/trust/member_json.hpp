// Structs as JSON: an object has each member by its name, in their order. What is read may be anything.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/codec/member_names.hpp"
#include "base/text.hpp"

namespace muster {

/// Returns the struct's JSON, without members that are empty: absent values, texts of no letter, structs of such members. Real numbers have four digits behind
/// the point. Members are numbers, letters, texts, structs, and lists and optional values of them. Pure.
template <typename T>
nlohmann::ordered_json member_json(T const& value) {
    using json = nlohmann::ordered_json;
    if constexpr (std::is_same_v<T, std::string>) {
        return value;
    } else if constexpr (std::is_same_v<T, char>) {
        return std::string(1, value);
    } else if constexpr (std::is_floating_point_v<T>) {
        return std::round(value * 1e4) / 1e4;
    } else if constexpr (std::is_arithmetic_v<T>) {
        return value;
    } else if constexpr (requires { value.has_value(); }) {
        return value ? member_json(*value) : json();
    } else if constexpr (requires { value.begin(); }) {
        auto rows = json::array();
        for (auto const& each : value) rows.push_back(member_json(each));
        return rows;
    } else {
        auto row = json::object();
        for_each_member(value, [&](std::string_view name, auto const& member) {
            auto own = member_json(member);
            bool const is_empty = own.is_null() || (own.is_object() && own.empty()) || own == "";
            if (!is_empty) row[std::string(name)] = std::move(own);
        });
        return row;
    }
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
