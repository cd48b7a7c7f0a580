#include "launch/record/recorded_words.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/letters.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"

namespace muster {

namespace {

constexpr char const* in_hex = "_hex";

std::string digits_of(std::string_view bytes) {
    std::string digits;
    for (unsigned char const byte : bytes) digits += fmt::format("{:02x}", byte);
    return digits;
}

/// One key of a record, and where it is.
struct recorded_key {
    std::string const& name;
    std::string_view origin;

    [[noreturn]] void refuse(std::string_view why) const {
        throw_error(errc::config, "{}: the key '{}' {}; give a record that muster has written", origin, name, why);
    }

    unsigned value_of(char digit) const {
        if (is_digit(digit)) return static_cast<unsigned>(digit - '0');
        if (digit < 'a' || digit > 'f') refuse("holds no hexadecimal digits");
        return static_cast<unsigned>(digit - 'a') + 10;
    }

    std::string bytes_of(std::string_view digits) const {
        if (digits.size() % 2 != 0) refuse("holds half a byte");
        std::string bytes;
        for (std::size_t i = 0; i < digits.size(); i += 2)
            bytes += static_cast<char>(value_of(digits[i]) << 4 | value_of(digits[i + 1]));
        return bytes;
    }

    template <typename Json>
    std::string text_of(Json const& from, bool is_hex) const {
        if (!from.is_string()) refuse("holds no text");
        auto text = from.template get<std::string>();
        if (is_hex) text = bytes_of(text);
        if (text.find('\0') != std::string::npos) refuse("holds a NUL byte, which no word can");
        return text;
    }
};

}  // namespace

void put_words(nlohmann::ordered_json& record, std::string const& key, std::vector<std::string> const& words) {
    record[key] = words;
    if (std::ranges::none_of(words, [](auto const& word) { return not_utf8_at(word).has_value(); })) return;
    auto& exact = record[key + in_hex] = nlohmann::ordered_json::array();
    for (auto const& word : words) exact.push_back(digits_of(word));
}

void put_text(nlohmann::ordered_json& record, std::string const& key, std::string const& text) {
    record[key] = text;
    if (not_utf8_at(text)) record[key + in_hex] = digits_of(text);
}

template <typename Json>
std::vector<std::string> words_in(Json const& record, std::string const& key, std::string_view origin) {
    recorded_key const of{key, origin};
    bool const is_hex = record.contains(key + in_hex);
    auto const found = record.find(is_hex ? key + in_hex : key);
    if (found == record.end()) return {};
    if (!found->is_array()) of.refuse("holds no list of texts");
    std::vector<std::string> words;
    for (auto const& word : *found) words.push_back(of.text_of(word, is_hex));
    return words;
}

template <typename Json>
std::string text_in(Json const& record, std::string const& key, std::string_view origin) {
    bool const is_hex = record.contains(key + in_hex);
    auto const found = record.find(is_hex ? key + in_hex : key);
    return found == record.end() ? std::string() : recorded_key{key, origin}.text_of(*found, is_hex);
}

template std::vector<std::string> words_in(nlohmann::json const&, std::string const&, std::string_view);
template std::vector<std::string> words_in(nlohmann::ordered_json const&, std::string const&, std::string_view);
template std::string text_in(nlohmann::json const&, std::string const&, std::string_view);
template std::string text_in(nlohmann::ordered_json const&, std::string const&, std::string_view);

namespace {

// Parts of a name, whose words any other character than letters and digits separates; digits at a word's end are ignored:
// DB_PASS1, dbPassword.
constexpr std::array telling_parts{
    "SECRET",     "PASSWORD",   "PASSWD",    "PASSPHRASE", "APIKEY",     "ACCESSKEY",         "ACCESS_KEY",
    "PRIVATEKEY", "CREDENTIAL", "COOKIE",    "AUTHKEY",    "ACCOUNTKEY", "CONNECTION_STRING", "WEBHOOK",
    "CONNSTR",    "BEARER",     "SIGNATURE", "SSHKEY",     "MASTERKEY",  "ENCRYPTIONKEY"};
constexpr std::array telling_words{"TOKENS", "KEY",  "KEYS",  "PAT", "PW",  "PWD",     "JWT",
                                   "PSK",    "CRED", "CREDS", "SAS", "PEM", "PASSCODE"};
constexpr std::array telling_ends{"TOKEN", "PASS", "AUTH"};  // at the end of a word
constexpr std::array harmless{"PWD", "SSH_AUTH_SOCK", "XDG_SESSION_ID", "AWS_REGION", "AWS_DEFAULT_REGION"};
constexpr std::array harmless_words{"BYPASS", "COMPASS"};

// Parts of a value, in capitals.
constexpr std::array telling_fields{"SIGNATURE", "X-AMZ-SIGNATURE", "X-GOOG-SIGNATURE", "ACCESS_TOKEN", "AUTH_TOKEN",
                                    "API_KEY",   "APIKEY",          "ACCESS_KEY",       "ACCOUNTKEY",   "SHAREDACCESSKEY",
                                    "SECRET",    "CLIENT_SECRET",   "PASSWORD",         "PASSWD",       "PWD"};
constexpr std::array telling_url_fields{"SIG", "TOKEN", "KEY", "PASS"};
constexpr std::size_t longest_field = 24;
constexpr std::array telling_beginnings{"GHP_", "GHO_", "GHU_",  "GHS_",  "GHR_", "GITHUB_PAT_", "GLPAT-",
                                        "HF_",  "SK-",  "XOXB-", "XOXP-", "AKIA", "EYJ"};
constexpr std::size_t shortest_token = 20;

/// Finds "https://user:password@host/", "https://TOKEN@host/": text before an @ that precedes the next slash. Only a user's name
/// is no secret if ssh logs in with it: "ssh://git@host/".
bool holds_url_secret(std::string_view value) {
    for (auto at = value.find("://"); at != std::string_view::npos; at = value.find("://", at + 3)) {
        auto const rest = value.substr(at + 3);
        auto const host = rest.substr(0, rest.find_first_of("/ \t\n"));
        auto const sign = host.find('@');
        if (sign == std::string_view::npos || sign == 0) continue;
        auto const scheme = value.substr(0, at);
        bool const is_login = scheme.ends_with("ssh") || scheme.ends_with("sftp");
        if (!is_login || host.substr(0, sign).find(':') != std::string_view::npos) return true;
    }
    return false;
}

template <typename List, typename Test>
bool any_of(List const& list, Test const& test) {
    return std::any_of(std::begin(list), std::end(list), test);
}

bool is_telling_word(std::string_view word) {
    while (!word.empty() && is_digit(word.back())) word.remove_suffix(1);
    if (any_of(harmless_words, [&](auto other) { return word == other; })) return false;
    return any_of(telling_words, [&](auto other) { return word == other; }) ||
           any_of(telling_ends, [&](auto end) { return word.ends_with(end); });
}

/// Finds "…?sig=x", "…&access_token=x", "Server=h;Password=x": NAME=VALUE at the beginning or after a separator of such fields.
bool holds_secret_field(std::string_view capitals) {
    for (auto at = capitals.find('='); at != std::string_view::npos; at = capitals.find('=', at + 1)) {
        auto const from = at < longest_field ? 0 : at - longest_field;
        auto const before = capitals.substr(from, at - from);
        auto const sign = before.find_last_of("?&;, \t\n");
        auto const name = sign == std::string_view::npos ? before : before.substr(sign + 1);
        auto const is_name = [&](std::string_view field) { return name == field; };
        bool const in_url = sign != std::string_view::npos && (before[sign] == '?' || before[sign] == '&');
        if (any_of(telling_fields, is_name) || (in_url && any_of(telling_url_fields, is_name))) return true;
    }
    return false;
}

bool looks_like_secret(std::string_view value) {
    auto const capitals = upper_case(value);
    if (capitals.starts_with("-----BEGIN ") && capitals.find("PRIVATE KEY") != std::string::npos) return true;
    if (capitals.starts_with("BEARER ") || capitals.starts_with("BASIC ")) return true;
    bool const one_word = value.size() >= shortest_token && value.find_first_of(" \t\n/:") == std::string_view::npos;
    if (one_word && any_of(telling_beginnings, [&](auto begin) { return capitals.starts_with(begin); })) return true;
    return holds_secret_field(capitals) || holds_url_secret(value);
}

}  // namespace

bool may_be_secret(std::string_view name, std::string_view value) {
    auto const known = upper_case(name);
    if (any_of(harmless, [&](auto other) { return known == other; })) return holds_url_secret(value);
    if (known.starts_with("AWS_") || any_of(telling_parts, [&](auto part) { return known.find(part) != std::string::npos; }))
        return true;
    auto words = known;  // not in TOKENIZERS_PARALLELISM
    std::replace_if(
        words.begin(), words.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    auto const pieces = split(words, '_');
    return any_of(pieces, is_telling_word) || looks_like_secret(value);
}

std::vector<std::string> leave_out_secrets(environment& variables) {
    std::vector<std::string> names;
    for (auto const& [name, value] : variables)
        if (may_be_secret(name, value)) names.push_back(name);
    for (auto const& name : names) variables.unset(name);
    return names;
}

std::string without_secret(std::string const& assignment) {
    auto const equals = assignment.find('=');
    if (equals == std::string::npos || !may_be_secret(assignment.substr(0, equals), assignment.substr(equals + 1)))
        return assignment;
    return assignment.substr(0, equals);
}

}  // namespace muster
