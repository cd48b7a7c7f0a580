#include "jobscripts/each.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "jobscripts/quote.hpp"

namespace muster {

namespace {

constexpr std::string_view index_name = "index";

bool is_name(std::string_view text) noexcept {
    return is_variable_name(text);
}

/// Returns whether the word is to be filled in at `found`; of an array without parameters only {index} is.
bool is_filled(placeholder const& found, std::vector<each_parameter> const& each) {
    if (found.name == index_name || (found.is_escaped && !each.empty())) return true;
    return std::ranges::find(each, found.name, &each_parameter::name) != each.end();
}

}  // namespace

std::optional<each_fault> find_each_fault(std::string_view entry) {
    auto const equals = entry.find('=');
    auto const name = entry.substr(0, equals);
    if (equals == std::string_view::npos || name.empty()) return each_fault{0, "NAME= is missing; write it as lr=0.1,0.01"};
    if (!is_name(name)) {
        auto const odd = std::ranges::find_if(name, [](char c) { return !is_name(std::string("_") + c); });
        return each_fault{odd == name.end() ? 0 : static_cast<std::size_t>(odd - name.begin()),
                          fmt::format("'{}' is no name: use letters, digits and _, and begin with no digit", name)};
    }
    if (name == index_name) return each_fault{0, "{index} is the number of the job in the array; take another name"};
    if (read_each(entry).values.size() < 2)
        return each_fault{equals + 1,
                          fmt::format("one value makes no sweep; give several, or write the value in place of {{{}}}", name)};
    if (entry.find('\0') != std::string_view::npos) return each_fault{entry.find('\0'), "a value cannot have a NUL byte"};
    return std::nullopt;
}

each_parameter read_each(std::string_view entry) {
    auto const equals = std::min(entry.find('='), entry.size());
    each_parameter read{std::string(entry.substr(0, equals)), {""}};
    for (std::size_t at = equals + 1; at < entry.size(); ++at) {
        bool const is_escaped = entry[at] == '\\' && at + 1 < entry.size() && entry[at + 1] == ',';
        if (is_escaped)
            read.values.back() += entry[++at];
        else if (entry[at] == ',')
            read.values.emplace_back();
        else
            read.values.back() += entry[at];
    }
    return read;
}

std::size_t count_tasks(std::vector<each_parameter> const& each) noexcept {
    std::size_t count = each.empty() ? 0 : 1;
    for (auto const& one : each) {
        count *= one.values.size();
        if (count > most_tasks) return 0;
    }
    return count;
}

std::vector<std::string> values_of_task(std::vector<each_parameter> const& each, std::size_t index) {
    std::vector<std::string> values(each.size());
    for (std::size_t i = each.size(); i-- > 0;) {
        auto const& of = each[i].values;
        values[i] = of[index % of.size()];
        index /= of.size();
    }
    return values;
}

std::vector<placeholder> find_placeholders(std::string_view word) {
    std::vector<placeholder> found;
    for (auto at = word.find('{'); at != std::string_view::npos; at = word.find('{', at)) {
        bool const of_shell = at > 0 && word[at - 1] == '$';
        bool const doubled = at + 1 < word.size() && word[at + 1] == '{';
        auto const from = at + (doubled ? 2 : 1);
        auto const end = word.find('}', from);
        if (end == std::string_view::npos) break;
        auto const name = word.substr(from, end - from);
        bool const closed_twice = end + 1 < word.size() && word[end + 1] == '}';
        if (of_shell || !is_name(name) || doubled != (doubled && closed_twice)) {
            ++at;
            continue;
        }
        auto const length = end + (doubled ? 2 : 1) - at;
        found.push_back({at, length, std::string(name), doubled});
        at += length;
    }
    return found;
}

std::string fill_word(std::string_view word, std::vector<each_parameter> const& each, std::size_t index) {
    auto const values = values_of_task(each, index);
    std::string filled;
    std::size_t from = 0;
    for (auto const& at : find_placeholders(word)) {
        if (!is_filled(at, each)) continue;
        filled += word.substr(from, at.offset - from);
        from = at.offset + at.length;
        auto const known = std::ranges::find(each, at.name, &each_parameter::name);
        if (at.is_escaped)
            filled += fmt::format("{{{}}}", at.name);
        else
            filled += known == each.end() ? std::to_string(index) : values[static_cast<std::size_t>(known - each.begin())];
    }
    return filled + std::string(word.substr(from));
}

std::string quote_task_word(std::string_view word, std::vector<each_parameter> const& each, bool is_array) {
    if (!is_array) return bash_quote(word);
    std::string quoted, plain;
    std::size_t from = 0;
    auto const end_plain = [&] {
        if (!plain.empty()) quoted += bash_quote(plain);
        plain.clear();
    };
    for (auto const& at : find_placeholders(word)) {
        if (!is_filled(at, each)) continue;
        plain += word.substr(from, at.offset - from);
        from = at.offset + at.length;
        if (at.is_escaped) {
            plain += fmt::format("{{{}}}", at.name);
            continue;
        }
        end_plain();
        quoted += at.name == index_name ? "\"$MUSTER_ARRAY_INDEX\"" : fmt::format("\"$value_of_{}\"", at.name);
    }
    plain += word.substr(from);
    end_plain();
    return quoted.empty() ? bash_quote("") : quoted;
}

std::vector<std::string> value_lines(std::vector<each_parameter> const& each) {
    std::vector<std::vector<std::string>> columns(each.size());
    for (std::size_t task = 0; task < count_tasks(each); ++task) {
        auto const values = values_of_task(each, task);
        for (std::size_t i = 0; i < values.size(); ++i) columns[i].push_back(bash_quote(values[i]));
    }
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < each.size(); ++i) {
        auto const& name = each[i].name;
        lines.push_back(fmt::format("values_of_{}=({})", name, join(columns[i], " ")));
        lines.push_back(fmt::format(
            "value_of_{0}=${{values_of_{0}[$MUSTER_ARRAY_INDEX]?\"the array has no job $MUSTER_ARRAY_INDEX\"}}", name));
    }
    return lines;
}

}  // namespace muster
