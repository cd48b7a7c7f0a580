// The user at the other end of a TCP connection on this machine.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::pmix {

/// The user that owns the socket with local address 127.0.0.1:`client_port` and peer 127.0.0.1:`server_port`, in the text of
/// /proc/net/tcp. Nothing if there is no such line. Pure; any bytes may be given.
std::optional<uid_t> uid_in_proc_net_tcp(std::string_view text, std::uint16_t client_port, std::uint16_t server_port);

/// The same from this machine's /proc/net/tcp; nothing where that cannot be read.
std::optional<uid_t> loopback_peer_uid(std::uint16_t client_port, std::uint16_t server_port);

}  // namespace muster::pmix
