#include "comm/tcp/endpoint.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/process/network.hpp"
#include "base/text.hpp"

namespace muster::tcp {

namespace {

constexpr std::size_t most_addresses = 8;

[[noreturn]] void refuse_text(std::string_view origin, std::string_view text, std::string_view part, std::string_view why) {
    throw parse_error(origin, text, static_cast<std::size_t>(part.data() - text.data()), why);
}

public_key parse_key(std::string_view digits, std::string_view origin, std::string_view text) {
    public_key key{};
    std::size_t length = 0;
    if (digits.size() != 2 * key.size() ||
        ::sodium_hex2bin(key.data(), key.size(), digits.data(), digits.size(), nullptr, &length, nullptr) != 0 ||
        length != key.size())
        refuse_text(origin, text, digits, "a key of 64 hexadecimal digits is expected here");
    return key;
}

}  // namespace

std::string to_text(endpoint const& where) {
    std::string key(2 * where.key.size() + 1, '\0');
    ::sodium_bin2hex(key.data(), key.size(), where.key.data(), where.key.size());
    key.pop_back();
    return fmt::format("{}/{}/{}/{}", where.host, where.port, join(where.addresses, ","), key);
}

endpoint parse_endpoint(std::string_view text, std::string_view origin) {
    auto const parts = split(text, '/');
    if (parts.size() != 4) throw parse_error(origin, text, text.size(), "expected HOST/PORT/ADDRESSES/KEY of a rank");
    endpoint where;
    where.host = parts[0];
    auto const port = parse_integer(parts[1]);
    if (!port || *port < 1 || *port > 65535) refuse_text(origin, text, parts[1], "a port is expected here");
    where.port = static_cast<int>(*port);
    for (auto const each : split(parts[2], ',')) {
        if (parse_address(std::string(each), where.port).length == 0 || where.addresses.size() == most_addresses)
            refuse_text(origin, text, each, "a numeric address is expected here, and at most 8 of them");
        where.addresses.emplace_back(each);
    }
    where.key = parse_key(parts[3], origin, text);
    return where;
}

std::vector<std::string> addresses_to_publish(std::string const& interface) {
    std::vector<std::string> addresses, last;
    auto const found = interface.empty() ? own_addresses() : addresses_of(interface, "the network interface");
    for (auto const& each : found)
        (interface.empty() && !why_not_unique(each.interface, each.address).empty() ? last : addresses).push_back(each.address);
    if (addresses.empty()) addresses = std::move(last);
    if (addresses.empty()) addresses.push_back("127.0.0.1");
    addresses.resize(std::min(addresses.size(), most_addresses));
    return addresses;
}

}  // namespace muster::tcp
