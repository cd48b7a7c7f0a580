// The place where a rank listens for the others, and the public key by which they recognise it. Travels as text through PMIx, a store or a variable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/tcp/handshake.hpp"

namespace muster::tcp {

struct endpoint {
    std::string host;  ///< for messages
    int port = 0;
    std::vector<std::string> addresses;  ///< numeric; tried in this order
    public_key key{};
    bool operator==(endpoint const&) const = default;
};

/// "n1/4711/10.0.0.1,fd00::1/KEY", the key in hexadecimal digits. Pure.
std::string to_text(endpoint const& where);

/// The reverse. `origin` begins the message. Throws parse_error. Pure.
endpoint parse_endpoint(std::string_view text, std::string_view origin);

/// The addresses to publish: of `interface` where one is given, else those that other machines may reach, or the loopback where there are
/// none. Throws errc::usage for an interface without addresses, errc::system.
std::vector<std::string> addresses_to_publish(std::string const& interface);

}  // namespace muster::tcp
