#include "launch/ranks/member_socket.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "pmix/member_message.hpp"

namespace muster {

namespace {

/// Scripts use low numbers for their own files.
constexpr int least_descriptor = 64;

}  // namespace

member_socket member_socket::make() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        throw_system("socketpair", "for a rank of an elastic run");
    member_socket made;
    made.ours_.reset(ends[0]);
    made.theirs_.reset(ends[1]);
    if (int const high = ::fcntl(ends[1], F_DUPFD_CLOEXEC, least_descriptor); high >= 0) made.theirs_.reset(high);
    return made;
}

void member_socket::watch(event_loop& loop, std::function<void(std::string_view)> take) {
    if (!ours_) return;
    loop_ = &loop;
    take_ = std::move(take);
    loop.watch_readable(ours_.get(), [this] { read(); });
    if (!waiting_.empty()) loop.watch_room(ours_.get(), [this] { write_waiting(); });
}

void member_socket::read() {
    std::string packet(elastic::longest_bytes, '\0');
    auto const got = ::recv(ours_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return close();  // no process of the rank has it open any more
    take_(std::string_view(packet).substr(0, static_cast<std::size_t>(got)));
}

void member_socket::send(std::string_view packet) {
    if (!ours_ || (waiting_.empty() && write(packet))) return;
    waiting_.emplace_back(packet);
    if (waiting_.size() == 1 && loop_ != nullptr) loop_->watch_room(ours_.get(), [this] { write_waiting(); });
}

/// Returns false if there is no room for it now.
bool member_socket::write(std::string_view packet) noexcept {
    ssize_t sent = 0;
    do sent = ::send(ours_.get(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent >= 0 || (errno != EAGAIN && errno != ENOBUFS);
}

void member_socket::write_waiting() {
    while (!waiting_.empty() && write(waiting_.front())) waiting_.pop_front();
    if (waiting_.empty()) loop_->unwatch_room(ours_.get());
}

void member_socket::close() noexcept {
    if (loop_ != nullptr && ours_) loop_->unwatch(ours_.get());
    ours_.reset();
    waiting_.clear();
}

}  // namespace muster
