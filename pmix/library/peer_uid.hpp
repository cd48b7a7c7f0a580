// The user at the other end of a TCP connection on this machine, asked of the kernel.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/unique_fd.hpp"

namespace muster::pmix {

/// The user that owns the open connection with local address 127.0.0.1:`client_port` and peer 127.0.0.1:`server_port`, in the
/// text of /proc/net/tcp. Nothing if there is no such line. Pure; any bytes may be given.
std::optional<uid_t> uid_in_proc_net_tcp(std::string_view text, std::uint16_t client_port, std::uint16_t server_port);

/// Finds the users that connect to one listening socket. Asks for one connection at a time (NETLINK_SOCK_DIAG), which takes some
/// microseconds however many connections the machine has; reads /proc/net/tcp only where the kernel does not answer such
/// questions. Not thread safe.
class peer_uid_lookup {
  public:
    /// `listener` is a listening TCP socket of IPv4 or IPv6; it is needed only here.
    explicit peer_uid_lookup(int listener);

    /// The user that owns the other end of `connection`, a socket that `listener` accepted. Nothing if the other end is not on
    /// this machine, or is closed again: a caller that this does not know is to be refused.
    std::optional<uid_t> find(int connection) const;

  private:
    unique_fd netlink_;  ///< null: the kernel does not answer
};

// The check of who connects to the PMIx library's port: callers of other users are closed before the library sees them, as are callers that say nothing.

/// Makes the program's `accept`, which this file's source defines in place of the C library's, check each caller from now on, or
/// no more. The library trusts the user number that a caller says, and reads from one caller at a time, waiting for it. Called by
/// the server before it starts the library.
void check_callers(bool on) noexcept;

/// While one lives, `accept` waits with the callers: a library that has begun to listen refuses those whose job it was not told of yet.
struct callers_held {
    callers_held() noexcept;
    ~callers_held();
    callers_held(callers_held const&) = delete;
    callers_held& operator=(callers_held const&) = delete;
};

}  // namespace muster::pmix
