#include "bench/study/metric_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "base/letters.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "bench/tools/checked_json.hpp"
#include "bench/tools/statistics.hpp"

namespace muster {

namespace {

constexpr std::string_view marker = "muster-metric:";
constexpr std::size_t longest_line = std::size_t{64} << 10;  // a marker is looked for in this much
constexpr std::size_t longest_match = 4096;                  // std::regex recurses once a character
constexpr std::size_t most_values = 1'000'000, most_series = 10'000;

std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> words;
    for (auto const word : split(text, ' '))
        if (auto const bare = trim(word); !bare.empty()) words.push_back(bare);
    return words;
}

/// Returns the rank of "[host:rank] TEXT" and removes the tag; -1, and the line unchanged, without one.
int take_tag(std::string_view& line) {
    auto const end = line.find("] ");
    if (!line.starts_with('[') || end == line.npos) return -1;
    auto const inside = line.substr(1, end - 1);
    auto const colon = inside.rfind(':');
    auto const rank = colon == inside.npos ? std::nullopt : parse_integer(inside.substr(colon + 1));
    if (!rank || *rank < 0 || *rank > 10'000'000) return -1;
    line.remove_prefix(end + 2);
    return static_cast<int>(*rank);
}

/// Returns the reason why the value is not kept, or "".
std::string keep(std::vector<metric_series>& all, std::string_view name, std::string_view unit, int rank, double value) {
    if (!std::isfinite(value)) return "is no finite number";
    auto found = std::find_if(all.begin(), all.end(), [&](auto const& s) { return s.rank == rank && s.name == name; });
    if (found == all.end()) {
        if (all.size() == most_series) return fmt::format("is beyond {} metrics", most_series);
        found = all.insert(all.end(), metric_series{std::string(name), std::string(unit), rank, {}});
    }
    if (found->unit != unit) return fmt::format("has the unit '{}', and had '{}'", unit, found->unit);
    if (found->values.size() == most_values) return fmt::format("is beyond {} values", most_values);
    found->values.push_back(value);
    return {};
}

double one_of(std::vector<double> const& values, std::string_view which) {
    if (which == "first") return values.front();
    if (which == "min") return *std::min_element(values.begin(), values.end());
    if (which == "max") return *std::max_element(values.begin(), values.end());
    if (which == "median") return median(values);
    double const sum = std::accumulate(values.begin(), values.end(), 0.0);
    if (which == "sum") return sum;
    return which == "mean" ? sum / static_cast<double>(values.size()) : values.back();
}

std::string read_word(std::string const& text, std::size_t begin, std::size_t end, std::vector<std::string> const& known) {
    auto const word = text.substr(begin, end - begin);
    if (std::find(known.begin(), known.end(), word) != known.end()) return word;
    auto const near = nearest(word, known);
    throw parse_error("--take", text, begin,
                      fmt::format("expected {}{}", join(known, ", "), near ? fmt::format("; did you mean {}?", *near) : ""),
                      errc::usage);
}

/// Returns the place of the '=' after a valid name. Throws parse_error.
std::size_t name_end(std::string const& option, std::string const& text, std::size_t end, std::string const& form) {
    if (end == text.npos) throw parse_error(option, text, text.size(), fmt::format("has no '='; write {}", form), errc::usage);
    if (!is_metric_name(std::string_view(text).substr(0, end)))
        throw parse_error(option, text, 0, "expected a name of letters, digits and \"_.-/\"", errc::usage);
    return end;
}

}  // namespace

bool is_metric_name(std::string_view name) noexcept {
    constexpr std::string_view extra = "_.-/";
    return !name.empty() && name.size() <= 128 &&
           std::all_of(name.begin(), name.end(), [&](char c) { return is_alphanumeric(c) || extra.find(c) != extra.npos; });
}

metric_pattern parse_metric_pattern(std::string const& text) {
    auto const equals = text.find('='), colon = text.find(':');
    bool const has_unit = colon < equals;
    name_end("--metric", text, equals == text.npos ? equals : has_unit ? colon : equals, "NAME=REGEX or NAME:UNIT=REGEX");
    metric_pattern out{text.substr(0, has_unit ? colon : equals),
                       has_unit ? text.substr(colon + 1, equals - colon - 1) : std::string(), text.substr(equals + 1)};
    try {
        std::regex const tried(out.regex);
    } catch (std::regex_error const& e) {
        throw parse_error("--metric", text, equals + 1, fmt::format("is no regular expression: {}", e.what()), errc::usage);
    }
    return out;
}

std::string pattern_text(metric_pattern const& pattern) {
    return fmt::format("{}{}={}", pattern.name, pattern.unit.empty() ? "" : ":" + pattern.unit, pattern.regex);
}

metric_choice parse_metric_choice(std::string const& text) {
    auto const equals = name_end("--take", text, text.find('='), "NAME=WHICH or NAME=WHICH,ACROSS");
    auto const comma = text.find(',', equals);
    metric_choice out;
    out.name = text.substr(0, equals);
    out.which = read_word(text, equals + 1, comma == text.npos ? text.size() : comma,
                          {"last", "first", "mean", "median", "min", "max", "sum"});
    if (comma != text.npos) out.across = read_word(text, comma + 1, text.size(), {"rank", "mean", "median", "min", "max", "sum"});
    return out;
}

double chosen_value(std::vector<metric_series const*> const& told, metric_choice const& choice) {
    expect(!told.empty(), "a metric with values");
    if (choice.across == "rank") {
        auto const lowest =
            std::min_element(told.begin(), told.end(), [](auto const* a, auto const* b) { return a->rank < b->rank; });
        return one_of((*lowest)->values, choice.which);
    }
    std::vector<double> values;
    for (auto const* series : told) values.push_back(one_of(series->values, choice.which));
    return one_of(values, choice.across);
}

metric_reader::metric_reader(std::vector<metric_pattern> const& patterns) {
    for (auto const& pattern : patterns) try {
            patterns_.push_back({pattern, std::regex(pattern.regex)});
        } catch (std::regex_error const& e) {
            throw_error(errc::usage, "the metric {}: '{}' is no regular expression: {}", pattern.name, pattern.regex, e.what());
        }
}

void metric_reader::add(std::string_view text) {
    while (!text.empty()) {
        auto const end = text.find('\n');
        auto const piece = text.substr(0, end);
        auto const room = longest_line - std::min(longest_line, line_.size());
        cut_ = cut_ || piece.size() > room;
        line_.append(piece.substr(0, room));
        if (end == text.npos) return;
        finish();
        text.remove_prefix(end + 1);
    }
}

void metric_reader::finish() {
    if (!line_.empty()) read_line(line_);
    line_.clear();
    cut_ = false;
}

void metric_reader::read_line(std::string_view line) {
    int const rank = take_tag(line);
    for (auto const part : split(line, '\r')) read_part(part, rank);  // progress bars begin the line again
}

void metric_reader::read_part(std::string_view part, int rank) {
    if (auto const at = part.find(marker); at != part.npos) {
        read_told(part.substr(at + marker.size()), rank);
        return;
    }
    auto const begin = part.substr(0, longest_match);
    for (auto const& [pattern, regex] : patterns_) {
        std::match_results<std::string_view::const_iterator> found;
        if (!std::regex_search(begin.begin(), begin.end(), found, regex)) continue;
        auto const text = found.size() > 1 ? found[1].str() : found[0].str();
        auto const value = parse_real(text);
        auto why = value ? keep(metrics_, pattern.name, pattern.unit, rank, *value) : "is no number";
        if (!why.empty() && fault_.empty()) fault_ = fmt::format("the metric {}: '{}' {}", pattern.name, text, why);
    }
}

void metric_reader::read_told(std::string_view told, int rank) {
    auto const words = words_of(told);
    std::string why;
    auto const value = words.size() >= 2 ? parse_real(words[1]) : std::nullopt;
    if (cut_)
        why = "is longer than a line may be";
    else if (words.size() < 2 || words.size() > 3)
        why = "is not NAME VALUE [UNIT]";
    else if (!is_metric_name(words[0]))
        why = "has a name that is not of letters, digits and \"_.-/\"; write NAME VALUE [UNIT]";
    else if (!value)
        why = "has a value that is no number";
    else
        why = keep(metrics_, words[0], words.size() == 3 ? words[2] : std::string_view(), rank, *value);
    if (!why.empty() && fault_.empty())
        fault_ = fmt::format("the line 'muster-metric:{}' {}", without_controls(told.substr(0, 200)), why);
}

std::vector<metric_series> read_metric_lines(std::string_view text, std::string const& origin) {
    std::vector<metric_series> out;
    std::size_t number = 0;
    auto const whole = text.rfind('\n');
    for (auto const line : split(text.substr(0, whole == text.npos ? 0 : whole), '\n')) {
        ++number;
        if (trim(line).empty()) continue;
        auto const place = fmt::format("{}, line {}", origin, number);
        auto const document = parse_json(line, place);
        checked_json const from(document, place);
        if (!document.is_object()) from.fail(fmt::format("is {}, expected an object", document.type_name()));
        auto const add = [&](std::string const& name, checked_json const& value, std::string const& unit) {
            if (!is_metric_name(name)) value.fail("has a name that is not of letters, digits and \"_.-/\"");
            if (auto const why = keep(out, name, unit, -1, value.number()); !why.empty()) value.fail(why);
        };
        if (from.has("metric"))
            add(from.at("metric").text(), from.at("value"), from.has("unit") ? from.at("unit").text() : std::string());
        else
            for (auto const& [name, value] : document.items())
                if (value.is_number()) add(name, from.at(name), "");
    }
    return out;
}

}  // namespace muster
