#include "comm/membership/member_link.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process/network.hpp"
#include "base/process/start_thread.hpp"
#include "base/text.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/keep_forever.hpp"

namespace muster {

namespace {

/// Children of fork() close it: close-on-exec does not concern them, and a child that lives on would hold the socket.
std::atomic<int> socket_of_process{-1};

void close_in_child() noexcept {
    if (int const socket = socket_of_process.exchange(-1); socket >= 0) ::close(socket);
}

/// Returns 0 on failure: programs that meet at the old port then find it in use.
int find_port() noexcept {
    try {
        return listen_on_all().port;
    } catch (error const&) {
        return 0;
    }
}

bool is_packet_socket(int descriptor) noexcept {
    int type = 0, domain = 0;
    socklen_t length = sizeof type;
    return ::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_SEQPACKET &&
           ::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX;
}

}  // namespace

member_link* member_link::open(environment const& variables, std::string address) {
    int const number = elastic::events_descriptor(variables.get_or(elastic::events_variable, ""));
    // A program that an earlier program of this rank has started may have another file with that number.
    if (number < 0 || !is_packet_socket(number)) return nullptr;
    auto* const made = new member_link(unique_fd(number));
    detail::keep_forever(static_cast<member_link*>(made));  // its thread and its callers use it until the process ends
    int const socket = made->socket_.get();
    ::fcntl(socket, F_SETFD, FD_CLOEXEC);
    socket_of_process = socket;
    ::pthread_atfork(nullptr, nullptr, close_in_child);
    made->send(elastic::hello{std::move(address)});
    // Messages that another program of this rank has not read come first.
    for (std::string packet; !made->view_.now;) {
        if (!made->receive(packet)) return nullptr;
        if (auto const what = elastic::decode(packet); std::holds_alternative<elastic::generation>(what)) made->take(what);
    }
    start_thread("for word of lost ranks", [made] { made->listen(); }).detach();
    return made;
}

/// Returns false at the end of the connection.
bool member_link::receive(std::string& packet) const {
    packet.resize(elastic::longest_bytes);
    ssize_t got = 0;
    do got = ::recv(socket_.get(), packet.data(), packet.size(), 0);
    while (got < 0 && errno == EINTR);
    packet.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return got > 0;
}

void member_link::send(elastic::message const& what) {
    auto const text = elastic::encode(what);
    ssize_t sent = 0;
    do sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
}

void member_link::listen() {
    for (std::string packet; receive(packet);) try {
            take(elastic::decode(packet));
        } catch (error const& fault) {
            spdlog::warn("{}", fault.what());
        }
    std::scoped_lock const lock(guard_);
    close(view_);
    changed_.notify_all();
}

void member_link::take(elastic::message const& what) {
    std::scoped_lock const lock(guard_);
    if (auto const news = muster::take(view_, what)) {
        for (auto const& one : watched_) tell(one, news->why, news->ranks);
        if (news->is_over) watched_.clear();
    }
    changed_.notify_all();
}

void member_link::tell(watched const& one, std::string_view why, std::vector<int> const& ranks) {
    auto const what = one.what.lock();
    if (!what) return;
    if (auto const theirs = ranks_within(one.members, ranks)) what->tell(why, *theirs);
}

elastic::generation member_link::now() const {
    check_process();
    std::scoped_lock const lock(guard_);
    return *view_.now;
}

std::shared_ptr<peer_loss> member_link::watch(std::span<int const> members) {
    check_process();
    auto made = std::make_shared<peer_loss>();
    std::scoped_lock const lock(guard_);
    std::erase_if(watched_, [](watched const& one) { return one.what.expired(); });
    watched_.push_back({made, {members.begin(), members.end()}});
    if (view_.lost) tell(watched_.back(), view_.lost->why, view_.lost->ranks);
    return made;
}

bool member_link::is_broken(int generation, duration patience) {
    check_process();
    std::unique_lock lock(guard_);
    return changed_.wait_for(lock, std::chrono::duration_cast<std::chrono::nanoseconds>(patience),
                             [&] { return muster::is_broken(view_, generation); });
}

void member_link::announce() {
    check_process();
    send(elastic::announce{});
}

elastic::generation member_link::reform(bool has_state, bool at_commit, duration deadline) {
    check_process();
    std::unique_lock lock(guard_);
    int const after = view_.now->number;
    send(elastic::reform{after, has_state, at_commit, find_port()});
    auto const is_over = [&] { return state_of_reform(view_, after) != reform_state::waits; };
    if (!changed_.wait_for(lock, std::chrono::duration_cast<std::chrono::nanoseconds>(deadline), is_over))
        throw comm_error(
            errc::timeout,
            fmt::format("generation {} of the world, after {}: timed out, it has not begun within {}; look at what the other "
                        "ranks do",
                        after + 1, after, format_duration(deadline)));
    if (state_of_reform(view_, after) == reform_state::closed)
        throw comm_error(
            errc::unavailable,
            fmt::format(
                "generation {} of the world, after {}: the launcher ends these ranks, perhaps to start all again, or is gone",
                after + 1, after));
    return *view_.now;
}

elastic::hosts_changed member_link::take_host_changes() {
    check_process();
    std::scoped_lock const lock(guard_);
    return muster::take_host_changes(view_);
}

void member_link::check_process() const {
    if (process_.is_foreign()) throw comm_error(errc::usage, fmt::format("elastic run: {}", detail::forked_words));
}

}  // namespace muster
