#include "bench/report/figure_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/text.hpp"

namespace muster {

namespace {

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool has_digit(std::string_view text) {
    return std::any_of(text.begin(), text.end(), is_digit);
}

}  // namespace

shown_rounding three_digits(double value) {
    double const size = std::abs(value);
    if (!std::isfinite(value) || size >= 100 || size == 0) return {};
    return {std::clamp(2 - static_cast<int>(std::floor(std::log10(size))), 0, 6), 1};
}

std::string show_value(double value, shown_rounding how) {
    return fmt::format("{:.{}f}", value * how.scale, how.digits);
}

std::string html_text(std::string_view text) {
    std::string out;
    for (char const c : text) switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            case '\'': out += "&#39;"; break;
            default: out += c;
        }
    return out;
}

figure_text& figure_text::words(std::string_view text) {
    text_ += how_ == markup::html ? html_text(text) : std::string(text);
    return *this;
}

figure_text& figure_text::name(std::string_view text) {
    if (how_ == markup::plain || !has_digit(text)) return words(text);
    text_ += "<span data-name>" + html_text(text) + "</span>";
    return *this;
}

figure_text& figure_text::figure(std::optional<double> value, json_place const& at, shown_rounding how) {
    if (!value || !std::isfinite(*value)) return words("-");
    auto const shown = show_value(*value, how);
    if (how_ == markup::plain) return words(shown);
    text_ += fmt::format("<span data-value=\"{}\" data-digits=\"{}\"{}>{}</span>", html_text(at.to_string()), how.digits,
                         how.scale == 1 ? "" : fmt::format(" data-scale=\"{:g}\"", how.scale), shown);
    return *this;
}

figure_text& figure_text::figure(std::optional<double> value, json_place const& at) {
    return figure(value, at, three_digits(value.value_or(0)));
}

bool figure_text::take_name(std::string_view rest, std::vector<std::string> const& names, std::size_t& length) {
    for (auto const& each : names) {
        if (!rest.starts_with(each)) continue;
        // A list of cores, "0", is not the beginning of "0.5".
        if (rest.size() > each.size() && is_digit(each.back()) && (is_word(rest[each.size()]) || rest[each.size()] == '.'))
            continue;
        name(each);
        length = each.size();
        return true;
    }
    return false;
}

std::size_t figure_text::take_figure(std::string_view rest, std::vector<known_figure> const& known) {
    std::size_t end = rest.front() == '-' ? 1 : 0;
    auto const begin = end;
    while (end < rest.size() && is_digit(rest[end])) ++end;
    int digits = 0;
    if (end + 1 < rest.size() && rest[end] == '.' && is_digit(rest[end + 1])) {
        auto const point = end++;
        while (end < rest.size() && is_digit(rest[end])) ++end;
        digits = static_cast<int>(end - point - 1);
    }
    if (end == begin) return 0;
    auto const token = rest.substr(0, end);
    shown_rounding const how{digits, end < rest.size() && rest[end] == '%' ? 100.0 : 1.0};
    auto const found =
        std::find_if(known.begin(), known.end(), [&](known_figure const& one) { return show_value(one.value, how) == token; });
    if (found == known.end())
        words(token);
    else
        figure(found->value, found->at, how);
    return end;
}

figure_text& figure_text::sentence(told_sentence const& told, json_place const& at, std::vector<known_figure> more) {
    auto& known = more;
    for (auto const& [member, value] : told.values) known.push_back({at / "values" / member, value});
    auto names = told.names;
    std::erase_if(names, [](auto const& each) { return !has_digit(each); });
    std::ranges::sort(names, std::greater<>(), &std::string::size);
    std::string_view const text = told.text;
    for (std::size_t i = 0; i < text.size();) {
        bool const begins = i == 0 || !is_word(text[i - 1]);
        std::size_t length = 0;
        if (begins && take_name(text.substr(i), names, length)) {
            i += length;
            continue;
        }
        if (begins && (is_digit(text[i]) || (text[i] == '-' && i + 1 < text.size() && is_digit(text[i + 1])))) {
            i += take_figure(text.substr(i), known);
            continue;
        }
        auto end = i + 1;  // the rest of the word at once, so that a figure within it does not count
        while (is_word(text[i]) && end < text.size() && is_word(text[end])) ++end;
        words(text.substr(i, end - i));
        i = end;
    }
    return *this;
}

}  // namespace muster
