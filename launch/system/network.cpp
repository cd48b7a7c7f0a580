#include "launch/system/network.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

struct addrinfo_free {
    void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};
using addrinfo_list = std::unique_ptr<addrinfo, addrinfo_free>;

/// Nothing if the name does not resolve; `why` then says so.
addrinfo_list resolve(std::string const& name, int port, int type, std::string* why = nullptr) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = type;
    addrinfo* found = nullptr;
    int const code = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (code != 0 && why != nullptr) *why = ::gai_strerror(code);
    return addrinfo_list(code == 0 ? found : nullptr);
}

bool is_loopback(std::string_view address) {
    return address.starts_with("127.") || address == "::1";
}

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

bool finish_connect(int fd, duration limit, int& fault) {
    pollfd one{fd, POLLOUT, 0};
    int const ready = ::poll(&one, 1, static_cast<int>(limit.count() * 1000));
    if (ready <= 0) {
        fault = ETIMEDOUT;
        return false;
    }
    socklen_t size = sizeof fault;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &fault, &size);
    return fault == 0;
}

/// This end's address of a connected socket.
std::string own_end(int fd) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
    return numeric_address(reinterpret_cast<sockaddr*>(&address), size);
}

}  // namespace

std::string numeric_address(sockaddr const* address, socklen_t length) {
    std::array<char, INET6_ADDRSTRLEN + IF_NAMESIZE> text{};
    if (::getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) return {};
    std::string result(text.data());
    if (result.starts_with("::ffff:") && result.find('.') != std::string::npos) result.erase(0, 7);  // IPv4 on an IPv6 socket
    return result;
}

std::vector<interface_address> own_addresses() {
    auto found = all_addresses(false);
    auto const routed = default_interfaces();
    auto const order = [&](interface_address const& a) {
        return std::pair(a.address.find(':') != std::string::npos, !routed.contains(a.interface));
    };
    std::stable_sort(found.begin(), found.end(), [&](auto const& a, auto const& b) { return order(a) < order(b); });
    return found;
}

std::vector<interface_address> addresses_of(std::string_view interface) {
    std::vector<interface_address> found;
    std::set<std::string> others;
    for (auto& one : all_addresses(true)) {
        others.insert(one.interface);
        if (one.interface == interface) found.push_back(std::move(one));
    }
    if (found.empty())
        throw error(errc::usage, fmt::format("--network-interface {}: no such interface with an address here; there are: {}",
                                             interface, fmt::join(others, ", ")));
    return found;
}

listener listen_on_all(int port) {
    // One socket for both families where IPv6 is there at all.
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
    if (!bound) throw_system("bind", fmt::format("TCP port {} on all addresses", port));
    if (::listen(socket.get(), 4096) != 0) throw_system("listen", fmt::format("TCP port {}", port));
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) throw_system("getsockname", "");
    int const given = ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                                          : reinterpret_cast<sockaddr_in&>(address).sin_port);
    return {std::move(socket), given};
}

unique_fd connect_to(std::string const& address, int port, duration limit) {
    std::string why;
    auto const list = resolve(address, port, SOCK_STREAM, &why);
    if (!list) throw error(errc::system, fmt::format("{}: {}", address, why));
    int fault = 0;
    for (auto const* a = list.get(); a != nullptr; a = a->ai_next) {
        unique_fd socket(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (!socket) continue;
        fault = 0;
        if (::connect(socket.get(), a->ai_addr, a->ai_addrlen) == 0 ||
            (errno == EINPROGRESS && finish_connect(socket.get(), limit, fault)))
            return socket;
        if (fault == 0) fault = errno;
    }
    throw error(fault == ETIMEDOUT ? errc::timeout : errc::system,
                fmt::format("{}: {}", with_port(address, port), std::strerror(fault)));
}

bool has_address(std::string const& host) {
    return resolve(host, 0, SOCK_STREAM) != nullptr;
}

std::string interface_that_has(std::string_view address) {
    for (auto const& one : all_addresses(true))
        if (one.address == address) return one.interface;
    return {};
}

std::string interface_towards(std::string const& address) {
    // A connected datagram socket sends nothing, but has gone through the kernel's routes.
    auto const list = resolve(address, 9, SOCK_DGRAM);
    for (auto const* a = list.get(); a != nullptr; a = a->ai_next) {
        unique_fd const socket(::socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        if (socket && ::connect(socket.get(), a->ai_addr, a->ai_addrlen) == 0) return interface_that_has(own_end(socket.get()));
    }
    return {};
}

std::string reachable_address(std::string const& name, std::string const& interface, int towards_launcher) {
    if (!interface.empty()) return addresses_of(interface).front().address;
    auto const list = name.empty() ? nullptr : resolve(name, 0, SOCK_STREAM);
    for (auto const* a = list.get(); a != nullptr; a = a->ai_next)
        if (auto const text = numeric_address(a->ai_addr, a->ai_addrlen); !is_loopback(text) && !interface_that_has(text).empty())
            return text;
    if (auto const text = own_end(towards_launcher); !text.empty() && !is_loopback(text)) return text;
    auto const own = own_addresses();
    return own.empty() ? "127.0.0.1" : own.front().address;
}

std::string with_port(std::string_view address, int port) {
    bool const six = address.find(':') != std::string_view::npos;
    return fmt::format("{}{}{}:{}", six ? "[" : "", address, six ? "]" : "", port);
}

}  // namespace muster
