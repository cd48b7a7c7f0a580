#include "comm/shm/rendezvous/rendezvous_socket.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <utility>

#include "comm/backend/comm_error.hpp"

namespace muster::shm {

namespace {

constexpr double longest_connect_s = 0.2;

struct abstract_name {
    sockaddr_un address{};
    socklen_t length = 0;
    sockaddr const* get() const noexcept { return reinterpret_cast<sockaddr const*>(&address); }
};

abstract_name name_of(std::string_view key) noexcept {
    abstract_name name;
    name.address.sun_family = AF_UNIX;
    std::size_t const size = std::min(key.size(), sizeof name.address.sun_path - 1);
    std::memcpy(name.address.sun_path + 1, key.data(), size);  // the leading zero makes it abstract
    name.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
    return name;
}

std::string with_rank(std::string const& key, int rank) {
    return fmt::format("{}/{}", key, rank);
}

/// Returns the rank in a name of with_rank().
std::optional<int> rank_in(std::string_view name, std::string const& key) noexcept {
    if (name.size() <= key.size() + 1 || !name.starts_with(key) || name[key.size()] != '/') return std::nullopt;
    name.remove_prefix(key.size() + 1);
    int rank = -1;
    auto const [end, fault] = std::from_chars(name.data(), name.data() + name.size(), rank);
    if (fault != std::errc{} || end != name.data() + name.size() || rank < 0) return std::nullopt;
    return rank;
}

}  // namespace

rendezvous_message refusal(errc code, std::string_view why, std::span<int const> culprits) noexcept {
    rendezvous_message message;
    message.failed = 1;
    message.code = code;
    auto const named = std::min(culprits.size(), rendezvous_message::most_culprits);
    message.culprits = static_cast<std::int32_t>(named);
    std::copy_n(culprits.begin(), named, message.culprit.begin());
    std::memcpy(message.why.data(), why.data(), std::min(why.size(), message.why.size() - 1));
    return message;
}

void throw_if_failed(rendezvous_message const& message) {
    if (message.failed == 0) return;
    auto const named = std::clamp<std::size_t>(static_cast<std::size_t>(message.culprits), 0, rendezvous_message::most_culprits);
    auto const end = std::find(message.why.begin(), message.why.end(), '\0');  // there may be no zero
    throw comm_error(message.code, std::string(message.why.begin(), end),
                     {message.culprit.begin(), message.culprit.begin() + named});
}

unique_fd make_socket() {
    unique_fd made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!made) throw_system("socket", "for the ranks of this node");
    return made;
}

int bind_to(int socket, std::string const& key, std::optional<int> rank) noexcept {
    auto const name = name_of(rank ? with_rank(key, *rank) : key);
    return ::bind(socket, name.get(), name.length) == 0 ? 0 : errno;
}

std::string name_to_try(std::string const& key, int which) {
    return which == 0 ? key : fmt::format("{}.{}", key, which);
}

int connect_to(int socket, std::string const& key) noexcept {
    auto const name = name_of(key);
    // Another user who holds the name, with a full queue, would keep this process waiting.
    limit_sending(socket, longest_connect_s);
    int const code = ::connect(socket, name.get(), name.length) == 0 ? 0 : errno;
    timeval const without_end{};
    ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &without_end, sizeof without_end);
    return code;
}

accepted accept_from(int listener, std::string const& key) {
    sockaddr_un address{};
    socklen_t length = sizeof address;
    accepted next;
    next.socket.reset(::accept4(listener, reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC));
    if (!next.socket) return next;
    std::size_t const before = offsetof(sockaddr_un, sun_path) + 1;
    if (length > before && length <= sizeof address) next.rank = rank_in({address.sun_path + 1, length - before}, key);
    return next;
}

std::optional<process_name> other_end(int socket) {
    ucred who{};
    socklen_t length = sizeof who;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0 || who.uid != ::geteuid()) return std::nullopt;
    std::ifstream file(fmt::format("/proc/{}/stat", who.pid));
    std::string line;
    std::getline(file, line);
    return process_name{who.pid, parse_stat(line).started, this_process().machine};
}

void limit_sending(int socket, double seconds) noexcept {
    // Zero would mean no limit; years would overflow.
    auto const us = static_cast<std::int64_t>(std::clamp(seconds, 1e-3, 1e7) * 1e6);
    timeval const limit{static_cast<time_t>(us / 1'000'000), static_cast<suseconds_t>(us % 1'000'000)};
    ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

bool send_bytes(int socket, void const* data, std::size_t size, int file) noexcept {
    iovec part{const_cast<void*>(data), size};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    if (file >= 0) {
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        cmsghdr* const rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(rights), &file, sizeof file);
    }
    ssize_t sent = 0;
    do sent = ::sendmsg(socket, &header, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(size);
}

std::ptrdiff_t receive_bytes(int socket, void* data, std::size_t size, unique_fd* file) noexcept {
    iovec part{data, size};
    msghdr header{};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    ssize_t got = 0;
    bool was_reset = false;
    for (;;) {
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
        if (got >= 0 || (errno != EINTR && errno != ECONNRESET)) break;
        // If the other end left without having read everything, this error comes first and its last message afterwards.
        if (errno == ECONNRESET && std::exchange(was_reset, true)) break;
    }
    if (got < 0) return -1;
    for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
        if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
        int received = -1;
        std::memcpy(&received, CMSG_DATA(each), sizeof received);
        unique_fd owner(received);
        if (file != nullptr) *file = std::move(owner);
    }
    return got;
}

}  // namespace muster::shm
