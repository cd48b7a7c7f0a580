// The reading of JSON that others wrote: bounded in depth, since nlohmann's library copies and writes a value by recursion.
#pragma once

#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace muster {

inline constexpr std::size_t deepest_json = 100;  ///< arrays and objects within each other

/// The value in `text`, as nlohmann::json or nlohmann::ordered_json: the one way to read JSON, as a unit test sees to. Throws parse_error (`code`) with
/// `origin`, line and caret: for text that is no JSON, for a number that no double can hold, and beyond deepest_json. Pure.
template <typename Json>
Json parse_json_as(std::string_view text, std::string_view origin, errc code = errc::invalid_data);

/// Returns what nlohmann's library says of a value of another type or a key that is missing, without its own words in front ("[json.exception.type_error.302] "). Pure.
std::string_view json_fault(std::exception const& fault) noexcept;

/// The same; a discarded value (Json::is_discarded) in place of an error.
template <typename Json>
Json parse_json_or_discard(std::string_view text);

/// Returns the text at a JSON pointer, "/allocation/job_id"; "" where `from` holds none there. Pure.
template <typename Json>
std::string text_at(Json const& from, char const* pointer);

/// Returns the value as JSON text: in one line, or in lines indented by `indent`, without a line end. Bytes that are not UTF-8 become U+FFFD. Pure.
template <typename Json>
std::string json_text(Json const& value, int indent = -1);

}  // namespace muster
