// Writes words into JSON records; those that are not UTF-8, which JSON cannot contain, are also in a second key, byte for byte.
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

/// Return what put_words() and put_text() were given, or an empty value without such a key. Throw errc::config, naming `origin`,
/// for another type, invalid digits, and a NUL byte. `Json` is nlohmann::json or nlohmann::ordered_json.
template <typename Json>
std::vector<std::string> words_in(Json const& record, std::string const& key, std::string_view origin);
template <typename Json>
std::string text_in(Json const& record, std::string const& key, std::string_view origin);

// Finds variables that contain secrets, which a run leaves out of its files.

/// Returns whether a variable's value may be a secret: by its name (HF_TOKEN, WANDB_API_KEY, AWS_*, PGPASSWORD), or because it
/// contains a URL with a password or a token (https://TOKEN@host/). Pure.
bool may_be_secret(std::string_view name, std::string_view value);

/// Removes variables that may be secrets; returns their names. Pure.
std::vector<std::string> leave_out_secrets(environment& variables);

/// Returns an entry of --env, without its value if that may be a secret. Pure.
std::string without_secret(std::string const& assignment);

}  // namespace muster
