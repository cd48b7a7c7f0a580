#include "launch/record/recorded_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

constexpr char const* in_hex = "_hex";

std::string digits_of(std::string_view bytes) {
    std::string digits;
    for (unsigned char const byte : bytes) digits += fmt::format("{:02x}", byte);
    return digits;
}

/// One key of a record, and where that stands.
struct recorded_key {
    std::string const& name;
    std::string_view origin;

    [[noreturn]] void refuse(std::string_view why) const {
        throw error(errc::config, fmt::format("{}: the key '{}' {}; give a record that muster has written", origin, name, why));
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
    if (std::none_of(words.begin(), words.end(), [](auto const& word) { return not_utf8_at(word).has_value(); })) return;
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

}  // namespace muster
