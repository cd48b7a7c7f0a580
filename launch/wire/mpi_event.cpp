#include "launch/wire/mpi_event.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <type_traits>

namespace muster {

static_assert(std::is_trivially_copyable_v<mpi_event>);

void write_event(int socket, mpi_event const& event) noexcept {
    while (::send(socket, &event, sizeof event, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EINTR) {
    }
}

std::vector<mpi_event> read_events(int socket) noexcept {
    std::vector<mpi_event> events;
    for (mpi_event one; events.size() < 16;) {
        auto const count = ::recv(socket, &one, sizeof one, 0);
        if (count < 0 && errno == EINTR) continue;
        if (count != static_cast<ssize_t>(sizeof one)) break;
        events.push_back(one);
    }
    return events;
}

}  // namespace muster
