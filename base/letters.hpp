// Letters of ASCII: their kind and case, in any locale.
#pragma once

#include <string>
#include <string_view>

namespace muster {

constexpr bool is_alphanumeric(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

constexpr char lower_case(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr char upper_case(char c) noexcept {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

inline std::string lower_case(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = lower_case(c);
    return out;
}
inline std::string upper_case(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = upper_case(c);
    return out;
}

}  // namespace muster
