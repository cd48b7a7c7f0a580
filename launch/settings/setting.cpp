#include "launch/settings/setting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/letters.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/units.hpp"
#include "launch/settings/parts.hpp"

namespace muster {

bool writes_job(std::string_view command) noexcept {
    return command == "script" || command == "submit" || command == "alloc";
}

namespace {

constexpr std::int64_t most = 10'000'000;
constexpr std::array truths{"true", "yes", "on", "1"};
constexpr std::array untruths{"false", "no", "off", "0"};

bool holds(std::string_view words, std::string_view word) noexcept {
    for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
        auto const end = at + word.size();
        if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
    }
    return false;
}

std::optional<value_fault> fault_of_duration(std::string const& text) {
    try {
        parse_duration(text);
        return std::nullopt;
    } catch (parse_error const&) {
        return value_fault{0, fmt::format("'{}' is no time; write 90, 90s, 5min or 1:30:00", text)};
    }
}

}  // namespace

std::string_view to_string(setting_group group) noexcept {
    switch (group) {
        case setting_group::placement: return "placement";
        case setting_group::nodes: return "nodes";
        case setting_group::engine: return "engine";
        case setting_group::ranks: return "the ranks";
        case setting_group::output: return "output";
        case setting_group::time: return "time";
        case setting_group::restarts: return "restarts";
        case setting_group::checks: return "checks";
        case setting_group::job: return "the job";
        case setting_group::general: return "general";
    }
    return "?";
}

std::span<setting_group const> setting_groups() noexcept {
    static constexpr std::array all{
        setting_group::placement, setting_group::nodes,    setting_group::engine, setting_group::ranks, setting_group::output,
        setting_group::time,      setting_group::restarts, setting_group::checks, setting_group::job,   setting_group::general};
    return all;
}

std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> words;
    for (auto const word : split(text, ' '))
        if (!word.empty()) words.push_back(word);
    return words;
}

namespace {

/// A job takes the same options whether its script is printed or submitted.
bool is_of(std::string_view command, setting const& row) noexcept {
    return holds(row.commands, command) || ((command == "submit" || command == "alloc") && holds(row.commands, "script"));
}

}  // namespace

bool is_listed(std::string_view command, setting const& row) noexcept {
    return is_of(command, row) && has_part(row.part);
}

bool takes(std::string_view command, setting const& row) noexcept {
    if (is_of(command, row)) return true;
    bool const of_its_run = (command == "submit" || command == "script") && row.is_configurable() && is_of("run", row);
    return (command == "config" && row.is_configurable()) || (command == "plan" && is_of("run", row)) ||
           (of_its_run && !is_of("submit", row));
}

bool takes_by_name_only(std::string_view command, setting const& row) noexcept {
    return writes_job(command) && !is_of(command, row);
}

setting const* find_setting(std::string_view name, std::string_view command) noexcept {
    for (auto const& row : settings())
        if (row.name == name && takes(command, row)) return &row;
    return nullptr;
}

setting const* find_configurable(std::string_view name) noexcept {
    for (auto const& row : settings())
        if (row.name == name && row.is_configurable()) return &row;
    return nullptr;
}

std::string variable_of(setting const& row) {
    std::string name = "MUSTER_";
    for (char const c : row.name) name += c == '-' ? '_' : upper_case(c);
    return name;
}

namespace {

/// Returns whether a word can be a separate entry: not for a list whose entries are texts, such as shell lines.
bool is_entry(setting const& row, std::string const& word) {
    if (row.name == "env") return word.find('=') != std::string::npos && !fault_of(row, word);
    if (row.name == "stage-in") return word.find(':') != std::string::npos;
    return row.name == "module";
}

/// Returns the words of a text in which each is an entry, as in MUSTER_ENV="A=1 B='2 3'"; else the whole text as one.
std::vector<std::string> words_or_text(setting const& row, std::string const& text) try {
    auto words = shell_split(text, row.name);
    bool const divides = !words.empty() && std::ranges::all_of(words, [&](auto const& w) { return is_entry(row, w); });
    return divides ? words : std::vector{text};
} catch (parse_error const&) {
    return {text};  // an unclosed quote
}

}  // namespace

std::vector<std::string> entries_of(setting const& row, std::string const& text, std::string_view origin, bool from_option) {
    if (row.kind != setting_kind::list || (row.separator == 0 && from_option)) return {text};
    if (row.separator == 0) return words_or_text(row, text);
    if (row.separator == ' ') return shell_split(text, origin);
    std::vector<std::string> entries;
    for (auto const piece : split(text, row.separator)) entries.emplace_back(trim(piece));
    return entries;
}

std::optional<value_fault> fault_of(setting const& row, std::string const& entry) {
    if (entry.find('\0') != std::string::npos) return value_fault{entry.find('\0'), "a NUL byte cannot be part of a value"};
    if (row.check != nullptr) return row.check(entry);
    if (row.kind == setting_kind::list) return std::nullopt;
    if (entry.empty()) return value_fault{0, "the value is empty; leave it out, or give one"};
    switch (row.kind) {
        case setting_kind::flag:
            for (auto const* word : truths)
                if (entry == word) return std::nullopt;
            for (auto const* word : untruths)
                if (entry == word) return std::nullopt;
            return value_fault{0, fmt::format("'{}' is neither true nor false", entry)};
        case setting_kind::integer: {
            auto const value = parse_integer(entry);
            if (value && *value >= row.least && *value <= most) return std::nullopt;
            return value_fault{0, fmt::format("'{}' is no whole number from {} to {}", entry, row.least, most)};
        }
        case setting_kind::time: return fault_of_duration(entry);
        case setting_kind::file:
        case setting_kind::folder:
        case setting_kind::text:
        case setting_kind::list: break;
    }
    if (entry == "--" && !row.choices.empty())
        return value_fault{0, fmt::format("its value is missing; write --{} {}", row.name, words_of(row.choices).front())};
    if (row.choices.empty() || holds(row.choices, entry)) return std::nullopt;
    std::vector<std::string> const words = [&] {
        auto const all = words_of(row.choices);
        return std::vector<std::string>(all.begin(), all.end());
    }();
    auto const near = nearest(entry, words);
    return value_fault{0, near ? fmt::format("'{}' is not one of {}; did you mean {}?", entry, join(words, ", "), *near)
                               : fmt::format("'{}' is not one of {}", entry, join(words, ", "))};
}

void throw_fault(std::string_view origin, std::string const& entry, value_fault const& fault) {
    if (fault.offset == 0) throw_error(errc::usage, "{}: {}", origin, fault.message);
    throw parse_error(origin, entry, fault.offset, fault.message, errc::usage);
}

}  // namespace muster
