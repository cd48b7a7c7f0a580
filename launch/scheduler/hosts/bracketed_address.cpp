#include "launch/scheduler/hosts/bracketed_address.hpp"

#include <arpa/inet.h>

#include <string>

namespace muster {

namespace {

bool is_address(int family, std::string_view word) {
    in6_addr address{};  // has room for either
    return ::inet_pton(family, std::string(word).c_str(), &address) == 1;
}

}  // namespace

bool is_ip_address(std::string_view word) {
    return is_address(AF_INET, word) || is_address(AF_INET6, word);
}

std::optional<bracketed_address> split_bracketed(std::string_view word) {
    auto const end = word.find(']');
    if (!word.starts_with('[') || end == std::string_view::npos) return std::nullopt;
    auto const inside = word.substr(1, end - 1);
    if (!is_ip_address(inside)) return std::nullopt;
    return bracketed_address{inside, word.substr(end + 1)};
}

bool looks_like_ipv6(std::string_view word) {
    if (word.starts_with('[')) return word.substr(1, word.find(']') - 1).find(':') != std::string_view::npos;
    return is_address(AF_INET6, word.substr(0, word.find('%')));
}

}  // namespace muster
