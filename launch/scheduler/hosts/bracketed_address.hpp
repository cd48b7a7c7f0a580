// IP addresses in place of host names, in brackets: an IPv6 address has colons itself, and slots stand behind one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster {

inline constexpr std::string_view bracket_ipv6 = "an IPv6 address stands in brackets, as in [fd00::5:1]:2, without a zone";

struct bracketed_address {
    std::string address;    ///< as the kernel writes it, so that two spellings are one host
    std::string_view rest;  ///< behind the brackets
};

/// "[fd00::5:1]:2" and "[10.0.0.1]:2" by their parts; nothing where no address stands in brackets at the beginning. Pure.
std::optional<bracketed_address> split_bracketed(std::string_view word);

/// Whether it is one without brackets, or something in brackets that has colons and is none. Pure.
bool looks_like_ipv6(std::string_view word);

/// An IPv6 address without brackets. Pure.
bool is_ipv6_address(std::string_view word);

/// An IPv4 or IPv6 address, without brackets. Pure.
bool is_ip_address(std::string_view word);

}  // namespace muster
