#include "pmix/pmi1/pmi1_listener.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>

#include "base/error.hpp"

namespace muster::pmix {
namespace {

unique_fd listen_on_loopback() {
    unique_fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listener) throw_system("socket", "for the PMI-1 server");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
        throw_system("bind", "127.0.0.1 for the PMI-1 server");
    if (listen(listener.get(), SOMAXCONN) != 0) throw_system("listen", "127.0.0.1 for the PMI-1 server");
    return listener;
}

std::uint16_t port_of(int fd) {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) throw_system("getsockname", "of the PMI-1 server");
    return ntohs(address.sin_port);
}

unique_fd open_spare() {
    return unique_fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

pmi1_listener::pmi1_listener()
    : listener_(listen_on_loopback()), port_(port_of(listener_.get())), users_(listener_.get()), spare_(open_spare()) {}

std::vector<unique_fd> pmi1_listener::accept_some(std::vector<server_event>& events) {
    std::vector<unique_fd> accepted;
    for (int turn = 0; turn < callers_a_turn; ++turn) {
        sockaddr_in peer{};
        socklen_t length = sizeof peer;
        unique_fd fd(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer), &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!fd && (errno == EMFILE || errno == ENFILE) && shed_one()) continue;
        if (!fd && errno == ECONNABORTED) continue;
        if (!fd) break;
        auto const who = peer.sin_addr.s_addr == htonl(INADDR_LOOPBACK) ? users_.find(fd.get()) : std::nullopt;
        if (who != geteuid()) {
            refuse(who, events);
            continue;
        }
        int const one = 1;
        setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        accepted.push_back(std::move(fd));
    }
    return accepted;
}

/// Without this the caller would wait in the queue, and the loop would be woken for it for ever.
bool pmi1_listener::shed_one() noexcept {
    if (!spare_) return false;
    spare_.reset();
    unique_fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)).reset();
    spare_ = open_spare();
    return true;
}

void pmi1_listener::refuse(std::optional<uid_t> who, std::vector<server_event>& events) {
    if (++refused_ != told_at_) return;
    told_at_ *= 10;
    auto const name =
        who ? fmt::format("user {}", *who) : std::string("a caller that is no open connection of this machine's 127.0.0.1");
    events.push_back(
        {.what = server_event::kind::log,
         .rank = -1,
         .code = 0,
         .text =
             refused_ == 1
                 ? fmt::format("muster: note: refused a connection of {} to the PMI port; further ones are counted\n", name)
                 : fmt::format("muster: note: refused {} connections to the PMI port, the last one of {}\n", refused_, name)});
}

}  // namespace muster::pmix
