// Part of programs, not of the library: what else uses the library and binds sockets keeps the C library's.
#include "pmix/server/held_listener.hpp"

/// Found before the C library's by the PMIx library.
extern "C" [[gnu::visibility("default")]] int bind(int fd, sockaddr const* address, socklen_t length) noexcept {
    return muster::pmix::bind_or_give(fd, address, length);
}
