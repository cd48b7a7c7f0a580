#include "pmix/server/held_listener.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "base/error.hpp"

namespace muster::pmix {
namespace {

constexpr int nothing_given = -1;
thread_local int given = nothing_given;

bool is_any_port_of_loopback(sockaddr const* address, socklen_t length) {
    sockaddr_in v4{};
    if (address == nullptr || length < sizeof v4 || address->sa_family != AF_INET) return false;
    std::memcpy(&v4, address, sizeof v4);
    return v4.sin_port == 0 && v4.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
}

}  // namespace

held_listener::held_listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof here;
    auto* const address = reinterpret_cast<sockaddr*>(&here);
    if (!socket_ || ::bind(socket_.get(), address, length) != 0 || ::listen(socket_.get(), SOMAXCONN) != 0 ||
        ::getsockname(socket_.get(), address, &length) != 0)
        throw_system("listen", "at 127.0.0.1 for PMIx", 0, "see whether the loopback interface is up (ip link show lo)");
    port_ = ntohs(here.sin_port);
}

held_listener::giving::giving(int listener) noexcept {
    given = listener;
}
held_listener::giving::~giving() {
    given = nothing_given;
}
bool held_listener::giving::is_taken() const noexcept {
    return given == nothing_given;
}

int bind_or_give(int fd, sockaddr const* address, socklen_t length) noexcept {
    if (given == nothing_given || !is_any_port_of_loopback(address, length))
        return static_cast<int>(::syscall(SYS_bind, fd, address, length));
    if (::dup3(given, fd, O_CLOEXEC) < 0) return -1;
    given = nothing_given;
    return 0;
}

}  // namespace muster::pmix
