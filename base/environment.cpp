#include "base/environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <climits>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

environment environment::capture() {
    environment snapshot;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        std::string_view const line(*entry);
        auto const equals = line.find('=');
        if (equals == std::string_view::npos || equals == 0) continue;
        snapshot.set(line.substr(0, equals), line.substr(equals + 1));
    }
    return snapshot;
}

std::optional<std::string> environment::get(std::string_view name) const {
    auto const found = values_.find(name);
    if (found == values_.end()) return std::nullopt;
    return found->second;
}

std::string environment::get_or(std::string_view name, std::string_view otherwise) const {
    auto const found = values_.find(name);
    return found == values_.end() ? std::string(otherwise) : found->second;
}

bool environment::has(std::string_view name) const {
    return values_.find(name) != values_.end();
}

std::optional<int> environment::get_int(std::string_view name) const {
    auto const found = values_.find(name);
    if (found == values_.end()) return std::nullopt;
    auto const value = parse_integer(trim(found->second));
    if (!value || *value < INT_MIN || *value > INT_MAX)
        throw parse_error(name, found->second, 0, fmt::format("{} must be a whole number; unset it or correct it", name));
    return static_cast<int>(*value);
}

void environment::set(std::string_view name, std::string_view value) {
    auto const place = values_.lower_bound(name);
    if (place != values_.end() && place->first == name)
        place->second = value;
    else
        values_.emplace_hint(place, name, value);
}

void environment::unset(std::string_view name) {
    auto const found = values_.find(name);
    if (found != values_.end()) values_.erase(found);
}

bool environment::set_default(std::string_view name, std::string_view value) {
    auto const place = values_.lower_bound(name);
    if (place != values_.end() && place->first == name) return false;
    values_.emplace_hint(place, name, value);
    return true;
}

void environment::unset_prefix(std::string_view prefix) {
    auto first = values_.lower_bound(prefix);
    while (first != values_.end() && first->first.starts_with(prefix)) first = values_.erase(first);
}

std::vector<std::string> environment::lines() const {
    std::vector<std::string> all;
    all.reserve(values_.size());
    for (auto const& [name, value] : values_) {
        auto& line = all.emplace_back();
        line.reserve(name.size() + 1 + value.size());
        line.append(name).append(1, '=').append(value);
    }
    return all;
}

std::string environment::shell_lines() const {
    std::string text;
    for (auto const& [name, value] : values_) text += name + "=" + shell_quote(value) + "\n";
    return text;
}

}  // namespace muster
