// Words in JSON records: those that are not UTF-8, which JSON cannot hold, stand byte for byte in a second key as well.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

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

// Names of variables that hold secrets: left out of what a run leaves on disk.

/// Whether a variable's value may be a secret: by its name (HF_TOKEN, WANDB_API_KEY, AWS_*, PGPASSWORD), or since it holds a URL with a password or
/// a token (https://TOKEN@host/). Pure.
bool may_be_secret(std::string_view name, std::string_view value);

/// Removes what may be a secret; returns the names. Pure.
std::vector<std::string> leave_out_secrets(environment& variables);

/// An entry of --env without its value where that may be a secret. Pure.
std::string without_secret(std::string const& assignment);

}  // namespace muster
