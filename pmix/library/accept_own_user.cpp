
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <optional>

#include "pmix/library/peer_uid.hpp"

namespace muster::pmix {
namespace {

/// A caller that says nothing, or stops within its greeting, is waited for no longer: the library reads greetings one after the other, without a
/// limit; version 5 goes on reading even where the socket has one, so a caller that says nothing must not reach it.
constexpr timeval greeting_limit{5, 0};

bool begins_to_speak(int connection) {
    pollfd wait{connection, POLLIN, 0};
    int ready = 0;
    do ready = poll(&wait, 1, greeting_limit.tv_sec * 1000);
    while (ready < 0 && errno == EINTR);
    return ready > 0;
}

std::atomic<bool> checking{false};
std::atomic<bool> holding{false};

bool is_own_user(int listener, int connection) {
    // One a thread and listener: the library listens from one thread.
    thread_local std::optional<peer_uid_lookup> callers;
    thread_local int callers_of = -1;
    if (!callers || callers_of != listener) callers.emplace(listener);
    callers_of = listener;
    return callers->find(connection) == geteuid();
}

bool is_tcp(int fd) {
    int family = AF_UNSPEC;
    socklen_t length = sizeof family;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length) == 0 && (family == AF_INET || family == AF_INET6);
}

}  // namespace

void check_callers(bool on) noexcept {
    checking.store(on, std::memory_order_release);
}

callers_held::callers_held() noexcept {
    holding.store(true);
}
callers_held::~callers_held() {
    holding.store(false);
    holding.notify_all();
}

}  // namespace muster::pmix

/// Found before the C library's by the PMIx library, which has no other way to ask who calls.
extern "C" [[gnu::visibility("default")]] int accept(int listener, sockaddr* address, socklen_t* length) {
    muster::pmix::holding.wait(true);
    int const fd = accept4(listener, address, length, 0);
    if (fd < 0 || !muster::pmix::checking.load(std::memory_order_acquire) || !muster::pmix::is_tcp(fd)) return fd;
    if (muster::pmix::is_own_user(listener, fd) && muster::pmix::begins_to_speak(fd)) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &muster::pmix::greeting_limit, sizeof muster::pmix::greeting_limit);
        return fd;
    }
    close(fd);
    // A failure would end the listening of version 5, whatever errno says. One whose other end is closed is read from once, and dropped.
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        errno = ECONNABORTED;  // after which version 4 goes on accepting
        return -1;
    }
    close(ends[1]);
    return ends[0];
}
