// Words in JSON records: those that are not UTF-8, which JSON cannot hold, stand byte for byte in a second key as well.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Sets `key`; if a word is not UTF-8 also `key`_hex, with all words as hexadecimal digits. Pure.
void put_words(nlohmann::ordered_json& record, std::string const& key, std::vector<std::string> const& words);
void put_text(nlohmann::ordered_json& record, std::string const& key, std::string const& text);

/// What put_words() and put_text() were given, empty where there is no such key. Throws errc::config, naming `origin`, for another type, digits that are none, and a NUL
/// byte. Of nlohmann::json and nlohmann::ordered_json.
template <typename Json>
std::vector<std::string> words_in(Json const& record, std::string const& key, std::string_view origin);
template <typename Json>
std::string text_in(Json const& record, std::string const& key, std::string_view origin);

}  // namespace muster
