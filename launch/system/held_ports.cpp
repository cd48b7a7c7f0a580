#include "launch/system/held_ports.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fstream>
#include <random>

#include "base/error.hpp"

namespace muster {

namespace {

constexpr int lowest_port = 15000;

/// The first port of the kernel's own range (32768 by default).
int first_ephemeral_port() {
    std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
    int first = 32768;
    file >> first;
    return file && first > lowest_port + 1000 ? first : 32768;
}

unique_fd bind_port(int port) {
    // An IPv6 socket without V6ONLY holds the port for IPv4 as well; where there is no IPv6, an IPv4 one does.
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
    int const end = first_ephemeral_port();
    int const range = end - lowest_port;
    std::minstd_rand random(std::random_device{}());
    int const start = static_cast<int>(random() % static_cast<unsigned>(range));
    for (int i = 0; i < range && static_cast<int>(numbers_.size()) < count; ++i) {
        int const port = lowest_port + (start + i) % range;
        if (auto fd = bind_port(port)) {
            sockets_.push_back(std::move(fd));
            numbers_.push_back(port);
        }
    }
    if (static_cast<int>(numbers_.size()) < count)
        throw error(errc::unavailable,
                    fmt::format("found {} free TCP ports between {} and {}, but need {}; end what holds them (ss -tlnp)",
                                numbers_.size(), lowest_port, end - 1, count));
}

}  // namespace muster
