// IP addresses in brackets in place of host names: an IPv6 address itself contains colons, and slots may follow one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster {

inline constexpr std::string_view bracket_ipv6 = "an IPv6 address stands in brackets, as in [fd00::5:1]:2, without a zone";

struct bracketed_address {
    std::string address;    ///< as the kernel writes it, so that two spellings are one host
    std::string_view rest;  ///< the text after the brackets
};

/// Splits "[fd00::5:1]:2" and "[10.0.0.1]:2" into their parts; returns nothing if no address in brackets begins the word. Pure.
std::optional<bracketed_address> split_bracketed(std::string_view word);

/// Returns whether it is an IPv6 address without brackets, or text in brackets that has colons but is no address. Pure.
bool looks_like_ipv6(std::string_view word);

/// Returns whether it is an IPv6 address without brackets. Pure.
bool is_ipv6_address(std::string_view word);

/// Returns whether it is an IPv4 or IPv6 address, without brackets. Pure.
bool is_ip_address(std::string_view word);

}  // namespace muster
