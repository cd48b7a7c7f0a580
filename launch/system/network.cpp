#include "launch/system/network.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>

#include "base/throw_error.hpp"

namespace muster {

namespace {

struct addrinfo_free {
    void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};
using addrinfo_list = std::unique_ptr<addrinfo, addrinfo_free>;

/// Returns nothing if the name does not resolve; `why` then says so.
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

/// Returns this end's address of a connected socket.
std::string own_end(int fd) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
    return numeric_address(reinterpret_cast<sockaddr*>(&address), size);
}

}  // namespace

unique_fd connect_to(std::string const& address, int port, duration limit) {
    std::string why;
    auto const list = resolve(address, port, SOCK_STREAM, &why);
    if (!list) throw_error(errc::system, "{}: {}", address, why);
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
    throw_error(fault == ETIMEDOUT      ? errc::timeout
                : fault == ECONNREFUSED ? errc::not_found
                                        : errc::system,
                "{}: {}", with_port(address, port), std::strerror(fault));
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
    // Connecting a datagram socket sends nothing, but uses the kernel's routes.
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

namespace {

constexpr int lowest_port = 15000;

/// Returns the first port of the kernel's range for outgoing connections (32768 by default).
int first_ephemeral_port() {
    std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
    int first = 32768;
    file >> first;
    return file && first > lowest_port + 1000 ? first : 32768;
}

unique_fd bind_port(int port) {
    // An IPv6 socket without V6ONLY holds the port for IPv4 as well; without IPv6, an IPv4 one does.
    if (unique_fd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)); fd) {
        int const off = 0;
        ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        sockaddr_in6 any{};
        any.sin6_family = AF_INET6;
        any.sin6_port = htons(static_cast<std::uint16_t>(port));
        if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) == 0) return fd;
        if (errno == EADDRINUSE || errno == EACCES) return unique_fd();
    }
    unique_fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) throw_system("socket", "for MASTER_PORT", 0, "raise the limit of open files with ulimit -n");
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) == 0) return fd;
    return unique_fd();
}

}  // namespace

held_ports::held_ports(int count) {
    auto const allowed = ports_in_use();
    int const lowest = allowed ? allowed->first : lowest_port;
    int const end = allowed ? allowed->last + 1 : first_ephemeral_port();
    int const range = end - lowest;
    std::minstd_rand random(std::random_device{}());
    int const start = static_cast<int>(random() % static_cast<unsigned>(range));
    for (int i = 0; i < range && static_cast<int>(numbers_.size()) < count; ++i) {
        int const port = lowest + (start + i) % range;
        if (auto fd = bind_port(port)) {
            sockets_.push_back(std::move(fd));
            numbers_.push_back(port);
        }
    }
    if (static_cast<int>(numbers_.size()) < count)
        throw_error(errc::unavailable, "found {} free TCP ports between {} and {}, but need {}; end what holds them (ss -tlnp){}",
                    numbers_.size(), lowest, end - 1, count, allowed ? ", or give a larger range by --ports" : "");
}

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string short_host_name() {
    return std::string(short_name(host_name()));
}

std::string_view without_user(std::string_view name) noexcept {
    auto const at = name.find('@');
    return at == std::string_view::npos ? name : name.substr(at + 1);
}

std::string_view short_name(std::string_view name) noexcept {
    return name.substr(0, name.find('.'));
}

}  // namespace muster
