#include "pmix/library/peer_uid.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/process/files.hpp"
#include "base/text.hpp"

namespace muster::pmix {
namespace {

/// One end of a connection, as sock_diag has it.
struct endpoint {
    std::uint8_t family = AF_UNSPEC;
    std::uint16_t port = 0;  ///< in network order
    std::array<std::uint32_t, 4> address{};
};

endpoint endpoint_of(sockaddr_storage const& from) {
    endpoint end;
    if (from.ss_family == AF_INET) {
        sockaddr_in v4{};
        std::memcpy(&v4, &from, sizeof v4);
        end = {AF_INET, v4.sin_port, {v4.sin_addr.s_addr}};
    } else if (from.ss_family == AF_INET6) {
        sockaddr_in6 v6{};
        std::memcpy(&v6, &from, sizeof v6);
        end.family = AF_INET6;
        end.port = v6.sin6_port;
        std::memcpy(end.address.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
    }
    return end;
}

using name_call = int (*)(int, sockaddr*, socklen_t*);

std::optional<endpoint> endpoint_of(int fd, name_call which) {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    if (which(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return std::nullopt;
    auto const end = endpoint_of(address);
    return end.family == AF_UNSPEC ? std::nullopt : std::optional(end);
}

struct question {
    nlmsghdr header;
    inet_diag_req_v2 body;
};

bool ask(int netlink, endpoint const& local, endpoint const& remote) {
    question asked{};
    asked.header.nlmsg_len = sizeof asked;
    asked.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    asked.header.nlmsg_flags = NLM_F_REQUEST;
    asked.body.sdiag_family = local.family;
    asked.body.sdiag_protocol = IPPROTO_TCP;
    asked.body.idiag_states = ~0U;
    auto& id = asked.body.id;
    id.idiag_sport = local.port;
    id.idiag_dport = remote.port;
    std::copy(local.address.begin(), local.address.end(), id.idiag_src);
    std::copy(remote.address.begin(), remote.address.end(), id.idiag_dst);
    id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    return send(netlink, &asked, sizeof asked, 0) == static_cast<ssize_t>(sizeof asked);
}

/// Returns what the kernel knows of the socket with these ends, or nothing.
std::optional<inet_diag_msg> socket_at(int netlink, endpoint const& local, endpoint const& remote) {
    if (!ask(netlink, local, remote)) return std::nullopt;
    std::array<char, 8192> answer;
    auto const count = recv(netlink, answer.data(), answer.size(), 0);
    nlmsghdr header{};
    inet_diag_msg found{};
    if (count < static_cast<ssize_t>(NLMSG_HDRLEN + sizeof found)) return std::nullopt;
    std::memcpy(&header, answer.data(), sizeof header);
    if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
    std::memcpy(&found, answer.data() + NLMSG_HDRLEN, sizeof found);
    return found;
}

std::optional<uid_t> uid_by_table(endpoint const& caller, endpoint const& own) {
    auto const loopback = htonl(INADDR_LOOPBACK);
    if (caller.family != AF_INET || caller.address[0] != loopback || own.address[0] != loopback) return std::nullopt;
    return uid_in_proc_net_tcp(read_text_file("/proc/self/net/tcp"), ntohs(caller.port), ntohs(own.port));
}

}  // namespace

std::optional<uid_t> uid_in_proc_net_tcp(std::string_view text, std::uint16_t client_port, std::uint16_t server_port) {
    // "  sl  local_address rem_address   st tx_queue:rx_queue tr:tm->when retrnsmt   uid …", addresses as the bytes lie in
    // memory. A connection that is closing belongs to nobody any more and shows user 0; st 01 is an open one.
    auto const local = fmt::format("0100007F:{:04X}", client_port);
    auto const remote = fmt::format("0100007F:{:04X}", server_port);
    for (auto const line : split(text, '\n')) {
        if (line.find(local) == std::string_view::npos) continue;
        std::vector<std::string_view> fields;
        for (auto const field : split(line, ' '))
            if (!field.empty()) fields.push_back(field);
        if (fields.size() < 8 || fields[1] != local || fields[2] != remote || fields[3] != "01") continue;
        auto const uid = parse_integer(fields[7]);
        if (uid && *uid >= 0 && *uid <= UINT32_MAX) return static_cast<uid_t>(*uid);
    }
    return std::nullopt;
}

peer_uid_lookup::peer_uid_lookup(int listener) : netlink_(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)) {
    if (!netlink_) return;
    timeval const at_most{1, 0};  // an answer comes at once or never
    setsockopt(netlink_.get(), SOL_SOCKET, SO_RCVTIMEO, &at_most, sizeof at_most);
    // A kernel without the module says "no such socket" to everything; of the listener itself it must know.
    auto const own = endpoint_of(listener, getsockname);
    endpoint nobody;
    if (own) nobody.family = own->family;
    if (!own || !socket_at(netlink_.get(), *own, nobody)) netlink_.reset();
}

std::optional<uid_t> peer_uid_lookup::find(int connection) const {
    auto const own = endpoint_of(connection, getsockname);
    auto const caller = endpoint_of(connection, getpeername);
    if (!own || !caller) return std::nullopt;
    if (!netlink_) return uid_by_table(*caller, *own);
    auto const found = socket_at(netlink_.get(), *caller, *own);
    // Where the caller has closed, the kernel may answer with another socket, or with one that is nobody's (user 0).
    if (!found || found->idiag_state != TCP_ESTABLISHED || found->id.idiag_sport != caller->port ||
        found->id.idiag_dport != own->port)
        return std::nullopt;
    return found->idiag_uid;
}

}  // namespace muster::pmix
