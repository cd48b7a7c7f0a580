#include "launch/wire/token.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>

#include "base/error.hpp"

namespace muster {

namespace {

constexpr std::size_t half_digits = 32;

std::string random_half() {
    std::array<unsigned char, half_digits / 2> bytes{};
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) throw_system("getrandom", "");
    std::string text;
    for (auto const byte : bytes) text += fmt::format("{:02x}", byte);
    return text;
}

}  // namespace

token make_token() {
    return {random_half(), random_half()};
}

token parse_token(std::string_view text) {
    if (text.size() != 2 * half_digits + 1 || text[half_digits] != ':')
        throw error(errc::parse, "MUSTER_TOKEN is not a token of muster run; start ranks with muster run, not with muster shim");
    return {std::string(text.substr(0, half_digits)), std::string(text.substr(half_digits + 1))};
}

bool same_secret(std::string_view a, std::string_view b) noexcept {
    unsigned difference = a.size() == b.size() ? 0 : 1;
    for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
        difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
    return difference == 0;
}

}  // namespace muster
