#include "launch/scheduler/hosts/bracketed_address.hpp"

#include <arpa/inet.h>

#include <array>
#include <string>
#include <utility>

namespace muster {

namespace {

/// Returns the address as the kernel writes it; nothing for any other text. inet_pton() would stop at a NUL.
std::optional<std::string> spell(int family, std::string_view word) {
    if (word.find('\0') != std::string_view::npos) return std::nullopt;
    in6_addr address{};  // has room for either family
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (::inet_pton(family, std::string(word).c_str(), &address) != 1) return std::nullopt;
    return ::inet_ntop(family, &address, text.data(), text.size());
}

std::optional<std::string> spell(std::string_view word) {
    auto const four = spell(AF_INET, word);
    return four ? four : spell(AF_INET6, word);
}

}  // namespace

bool is_ipv6_address(std::string_view word) {
    return spell(AF_INET6, word).has_value();
}

bool is_ip_address(std::string_view word) {
    return spell(word).has_value();
}

std::optional<bracketed_address> split_bracketed(std::string_view word) {
    auto const end = word.find(']');
    if (!word.starts_with('[') || end == std::string_view::npos) return std::nullopt;
    auto address = spell(word.substr(1, end - 1));
    if (!address) return std::nullopt;
    return bracketed_address{std::move(*address), word.substr(end + 1)};
}

bool looks_like_ipv6(std::string_view word) {
    if (word.starts_with('[')) return word.substr(1, word.find(']') - 1).find(':') != std::string_view::npos;
    return is_ipv6_address(word.substr(0, word.find('%')));
}

}  // namespace muster
