#include "base/process/network.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <sstream>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"

namespace muster {

namespace {

socklen_t length_of(sockaddr const* address) {
    return address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

bool is_link_local(sockaddr const* address) {
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<sockaddr_in6 const*>(address)->sin6_addr);
}

/// The interfaces of IPv4 default routes (/proc/net/route, proc(5)).
std::set<std::string, std::less<>> default_interfaces() {
    std::set<std::string, std::less<>> names;
    std::ifstream routes("/proc/net/route");
    for (std::string line; std::getline(routes, line);) {
        std::istringstream words(line);
        std::string name;
        std::string destination;
        if (words >> name >> destination && destination == "00000000") names.insert(name);
    }
    return names;
}

namespace fs = std::filesystem;

constexpr std::array local_prefixes{"docker", "virbr", "cni", "podman", "lxcbr", "lxdbr"};

/// Returns whether a device of this machine carries it: its own, or one below it (of a bond, a VLAN, a bridge).
bool has_hardware(fs::path const& interface, int depth = 0) {
    if (path_exists(interface / "device")) return true;
    if (depth > 4) return false;
    for (auto const& entry : folder_entries(interface))
        if (auto const name = entry.filename().string(); name.starts_with("lower_"))
            if (has_hardware(interface.parent_path() / name.substr(6), depth + 1)) return true;
    return false;
}

constexpr int most_waiting = 4096;  ///< connections that the kernel keeps for a socket

/// Reads the port that the socket got.
listener listening(unique_fd socket, std::string const& name) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) throw_system("getsockname", name);
    int const given = ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                                          : reinterpret_cast<sockaddr_in&>(address).sin_port);
    return {std::move(socket), given};
}

}  // namespace

std::string numeric_address(sockaddr const* address, socklen_t length) {
    std::array<char, INET6_ADDRSTRLEN + IF_NAMESIZE> text{};
    if (::getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) return {};
    std::string result(text.data());
    if (result.starts_with("::ffff:") && result.find('.') != std::string::npos) result.erase(0, 7);  // IPv4 on an IPv6 socket
    return result;
}

std::vector<interface_address> all_addresses(bool with_loopback) {
    ifaddrs* raw = nullptr;
    if (::getifaddrs(&raw) != 0) throw_system("getifaddrs", "");
    std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> const list(raw, ::freeifaddrs);
    std::vector<interface_address> found;
    for (auto const* i = list.get(); i != nullptr; i = i->ifa_next) {
        if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) continue;
        int const family = i->ifa_addr->sa_family;
        if ((family != AF_INET && family != AF_INET6) || is_link_local(i->ifa_addr)) continue;
        if (!with_loopback && (i->ifa_flags & IFF_LOOPBACK) != 0) continue;
        found.push_back({i->ifa_name, numeric_address(i->ifa_addr, length_of(i->ifa_addr))});
    }
    return found;
}

std::vector<interface_address> own_addresses() {
    auto found = all_addresses(false);
    auto const routed = default_interfaces();
    auto const order = [&](interface_address const& a) {
        return std::pair(a.address.find(':') != std::string::npos, !routed.contains(a.interface));
    };
    std::ranges::stable_sort(found, [&](auto const& a, auto const& b) { return order(a) < order(b); });
    return found;
}

bool has_interface(std::string_view interface) {
    auto const all = all_addresses(true);
    return std::ranges::any_of(all, [&](auto const& one) { return one.interface == interface; });
}

std::vector<interface_address> addresses_of(std::string_view interface, std::string_view named_by) {
    std::vector<interface_address> found;
    std::set<std::string> others;
    for (auto& one : all_addresses(true)) {
        others.insert(one.interface);
        if (one.interface == interface) found.push_back(std::move(one));
    }
    if (found.empty())
        throw_error(errc::usage, "{} {}: no such interface with an address here; there are: {}", named_by, interface,
                    fmt::join(others, ", "));
    return found;
}

std::string why_not_unique(std::string_view interface, std::string_view address, std::string const& sysfs) {
    if (address.starts_with("169.254.")) return "a link-local address";
    if (std::ranges::any_of(local_prefixes, [&](auto const* p) { return interface.starts_with(p); }))
        return "a network of containers or virtual machines of this machine";
    fs::path const here = fs::path(sysfs) / interface;
    if (path_exists(here / "bridge") && !has_hardware(here)) return "a bridge without a physical port";
    return {};
}

namespace {

std::atomic<std::uint32_t> range_in_use{0};  ///< first << 16 | last; 0: any

/// A socket that listens on that port of all addresses (one socket for both families where IPv6 is there at all); else none, and errno says why.
unique_fd listen_on_port(int port) {
    unique_fd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    int const off = 0;
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_addr = in6addr_any;
    six.sin6_port = htons(static_cast<std::uint16_t>(port));
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = six.sin6_port;
    bool bound = socket && ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0 &&
                 ::bind(socket.get(), reinterpret_cast<sockaddr*>(&six), sizeof six) == 0;
    if (!bound) {
        socket.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        bound = socket && ::bind(socket.get(), reinterpret_cast<sockaddr*>(&four), sizeof four) == 0;
    }
    return bound && ::listen(socket.get(), most_waiting) == 0 ? std::move(socket) : unique_fd();
}

unique_fd listen_at(std::string const& address, int port) {
    auto const place = parse_address(address, port);
    unique_fd socket(::socket(place.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    bool const listens = place.length != 0 && socket && ::bind(socket.get(), place.get(), place.length) == 0 &&
                         ::listen(socket.get(), most_waiting) == 0;
    return listens ? std::move(socket) : unique_fd();
}

/// The first port of the range that `listen` gets. Each process begins at another place, so that not all of them try the same ports.
template <typename Listen>
unique_fd listen_in(port_range range, std::string const& name, Listen const& listen) {
    auto const count = range.last - range.first + 1;
    std::minstd_rand random(std::random_device{}());
    auto const start = static_cast<int>(random() % static_cast<unsigned>(count));
    for (int i = 0; i < count; ++i) {
        if (auto socket = listen(range.first + (start + i) % count)) return socket;
        if (errno != EADDRINUSE && errno != EACCES) throw_system("bind", name);
    }
    throw_error(
        errc::unavailable,
        "no TCP port from {} to {} is free (--ports, MUSTER_PORTS); end what holds them (ss -tlnp), or give a larger range",
        range.first, range.last);
}

}  // namespace

port_range parse_port_range(std::string_view text, std::string_view origin) {
    constexpr int lowest = 1024, highest = 65535;
    auto const fail = [&](std::size_t at, std::string const& why) { throw parse_error(origin, text, at, why, errc::usage); };
    auto const dash = text.find('-');
    if (dash == std::string_view::npos) fail(0, "no range of ports; write it as 40000-41000");
    auto const first = parse_integer(trim(text.substr(0, dash))), last = parse_integer(trim(text.substr(dash + 1)));
    if (!first || *first < lowest || *first > highest) fail(0, fmt::format("a port lies between {} and {}", lowest, highest));
    if (!last || *last < lowest || *last > highest) fail(dash + 1, fmt::format("a port lies between {} and {}", lowest, highest));
    if (*last < *first) fail(dash + 1, fmt::format("the range ends before it begins; write {}-{}", *last, *first));
    return {static_cast<int>(*first), static_cast<int>(*last)};
}

void use_ports(port_range range) noexcept {
    range_in_use = static_cast<std::uint32_t>(range.first) << 16 | static_cast<std::uint32_t>(range.last);
}

std::optional<port_range> ports_in_use() noexcept {
    auto const range = range_in_use.load();
    if (range == 0) return std::nullopt;
    return port_range{static_cast<int>(range >> 16), static_cast<int>(range & 0xffff)};
}

listener listen_on_all(int port) {
    auto const name = fmt::format("TCP port {} on all addresses", port);
    if (auto const range = ports_in_use(); range && port == 0) return listening(listen_in(*range, name, listen_on_port), name);
    auto socket = listen_on_port(port);
    if (!socket) throw_system("bind", name);
    return listening(std::move(socket), name);
}

listener listen_on(std::string const& address) {
    bool const is_here = address.starts_with("127.") || address == "::1";
    if (auto const range = ports_in_use(); range && !is_here)
        return listening(listen_in(*range, address, [&](int port) { return listen_at(address, port); }), address);
    auto socket = listen_at(address, 0);
    if (!socket) throw_system("bind", address);
    return listening(std::move(socket), address);
}

socket_address parse_address(std::string const& address, int port) noexcept {
    socket_address made;
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(address.c_str(), nullptr, &hints, &found) != 0) return made;
    std::memcpy(&made.storage, found->ai_addr, found->ai_addrlen);
    made.length = found->ai_addrlen;
    ::freeaddrinfo(found);
    auto const wanted = htons(static_cast<std::uint16_t>(port));
    if (made.storage.ss_family == AF_INET) reinterpret_cast<sockaddr_in&>(made.storage).sin_port = wanted;
    if (made.storage.ss_family == AF_INET6) reinterpret_cast<sockaddr_in6&>(made.storage).sin6_port = wanted;
    return made;
}

void detect_lost_peer(int socket, duration limit) noexcept {
    int const on = 1;
    int const seconds = std::max(3, static_cast<int>(limit.count()));
    int const interval = 2;
    int const probes = std::clamp(seconds / 2 / interval, 1, 5);
    int const idle = std::max(1, seconds - probes * interval);
    unsigned const unacknowledged_ms = static_cast<unsigned>(seconds) * 1000;
    ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof unacknowledged_ms);
}

std::string with_port(std::string_view address, int port) {
    bool const six = address.find(':') != std::string_view::npos;
    return fmt::format("{}{}{}:{}", six ? "[" : "", address, six ? "]" : "", port);
}

}  // namespace muster
