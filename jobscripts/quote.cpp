#include "jobscripts/quote.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/letters.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

constexpr std::size_t longest_value = 256;

bool is_control(char c) noexcept {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

std::string_view extra_characters(directive_text kind) noexcept {
    switch (kind) {
        case directive_text::name: return "_.+-@";
        case directive_text::resource: return "_.+-@:=,/";
        case directive_text::expression: return "_.+-@&|!*()[]:=,";
        case directive_text::array: return "-,:%";
        case directive_text::job: return "_.[]-";
        case directive_text::directive: return "_.+-@:=,/% ";
    }
    return {};
}

bool may_begin(char c, directive_text kind) noexcept {
    if (kind == directive_text::directive) return c == '-';
    return is_alphanumeric(c) || c == '_' || (kind == directive_text::expression && (c == '(' || c == '[' || c == '!'));
}

}  // namespace

std::string bash_quote(std::string_view word) {
    if (std::ranges::none_of(word, is_control) || word.find('\0') != std::string_view::npos) return shell_quote(word);
    std::string quoted = "$'";
    for (char const c : word) {
        // Three octal digits always, so that a digit which follows is not taken for a part of them.
        if (is_control(c) || static_cast<unsigned char>(c) >= 0x80)
            quoted += c == '\n' ? std::string("\\n") : fmt::format("\\{:03o}", static_cast<unsigned char>(c));
        else if (c == '\'' || c == '\\')
            quoted += {'\\', c};
        else
            quoted += c;
    }
    return quoted + "'";
}

std::optional<directive_fault> find_fault(std::string_view value, directive_text kind) {
    if (value.empty()) return directive_fault{0, "the value is empty"};
    if (value.size() > longest_value)
        return directive_fault{longest_value, fmt::format("the value is longer than {} characters", longest_value)};
    if (!may_begin(value.front(), kind))
        return directive_fault{0, kind == directive_text::directive ? "a directive begins with '-'"
                                                                    : "the value must begin with a letter, a digit or '_'"};
    auto const extra = extra_characters(kind);
    for (std::size_t i = 0; i < value.size(); ++i) {
        if (!is_alphanumeric(value[i]) && extra.find(value[i]) == std::string_view::npos)
            return directive_fault{
                i, fmt::format("only letters, digits and {} are allowed: the directives of schedulers have no quoting", extra)};
        if (value[i] == ' ' && (i + 1 == value.size() || value[i + 1] == ' '))
            return directive_fault{i, "there is more than one blank, or one at the end"};
    }
    return std::nullopt;
}

std::string directive_value(std::string_view what, std::string_view value, directive_text kind) {
    if (auto const fault = find_fault(value, kind)) throw parse_error(what, value, fault->offset, fault->why, errc::usage);
    return std::string(value);
}

bool is_variable_name(std::string_view name) noexcept {
    if (name.empty() || (name.front() >= '0' && name.front() <= '9')) return false;
    return std::ranges::all_of(name, [](char c) { return is_alphanumeric(c) || c == '_'; });
}

std::string variable_name(std::string_view name) {
    if (!is_variable_name(name))
        throw parse_error("environment variable", name, 0, "a name holds letters, digits and _, and begins with no digit",
                          errc::usage);
    return std::string(name);
}

}  // namespace muster
