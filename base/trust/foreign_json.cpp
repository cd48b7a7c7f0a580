#include "base/trust/foreign_json.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

namespace muster {

namespace {

/// Returns where `text` gets deeper than deepest_json; of text that is no JSON, some place or nothing.
std::optional<std::size_t> too_deep_at(std::string_view text) noexcept {
    std::size_t depth = 0;
    bool in_text = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        char const c = text[i];
        if (in_text && c == '\\')
            ++i;
        else if (c == '"')
            in_text = !in_text;
        else if (!in_text && (c == '[' || c == '{') && ++depth > deepest_json)
            return i;
        else if (!in_text && (c == ']' || c == '}') && depth > 0)
            --depth;
    }
    return std::nullopt;
}

}  // namespace

template <typename Json>
Json parse_json_as(std::string_view text, std::string_view origin, errc code) {
    if (auto const at = too_deep_at(text))
        throw parse_error(origin, text, *at, fmt::format("nested deeper than {} levels", deepest_json), code);
    try {
        return Json::parse(text);
    } catch (nlohmann::json::parse_error const& e) {
        std::string_view what = e.what();  // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error …"
        if (auto const at = what.find(": "); at != what.npos) what.remove_prefix(at + 2);
        throw parse_error(origin, text, e.byte > 0 ? e.byte - 1 : 0, what, code);
    } catch (nlohmann::json::out_of_range const& e) {  // "… number overflow parsing '1e999'", which names no place
        std::string_view const what = e.what();
        auto const quote = what.find('\'');
        auto const number = quote == what.npos ? std::string_view() : what.substr(quote + 1, what.rfind('\'') - quote - 1);
        auto const at = text.find(number);
        throw parse_error(origin, text, at == text.npos ? 0 : at, "a number that no double can hold", code);
    }
}

std::string_view json_fault(std::exception const& fault) noexcept {
    std::string_view const what = fault.what();
    auto const end = what.starts_with('[') ? what.find("] ") : what.npos;
    return end == what.npos ? what : what.substr(end + 2);
}

template <typename Json>
Json parse_json_or_discard(std::string_view text) {
    return too_deep_at(text) ? Json(Json::value_t::discarded) : Json::parse(text, nullptr, false);
}

template <typename Json>
std::string text_at(Json const& from, char const* pointer) {
    typename Json::json_pointer const at(pointer);
    return from.contains(at) && from[at].is_string() ? from[at].template get<std::string>() : std::string();
}

template <typename Json>
std::string json_text(Json const& value, int indent) {
    return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

template nlohmann::json parse_json_as(std::string_view, std::string_view, errc);
template nlohmann::ordered_json parse_json_as(std::string_view, std::string_view, errc);
template nlohmann::json parse_json_or_discard(std::string_view);
template nlohmann::ordered_json parse_json_or_discard(std::string_view);
template std::string text_at(nlohmann::json const&, char const*);
template std::string text_at(nlohmann::ordered_json const&, char const*);
template std::string json_text(nlohmann::json const&, int);
template std::string json_text(nlohmann::ordered_json const&, int);

}  // namespace muster
