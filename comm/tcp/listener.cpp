#include "comm/tcp/listener.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>

#include "base/error.hpp"
#include "base/process/network.hpp"
#include "base/text.hpp"
#include "comm/backend/processes/rank_processes.hpp"

namespace muster::tcp {

namespace {

constexpr std::size_t most_addresses = 8;

[[noreturn]] void refuse_text(std::string_view origin, std::string_view text, std::string_view part, std::string_view why) {
    throw parse_error(origin, text, static_cast<std::size_t>(part.data() - text.data()), why);
}

}  // namespace

std::string to_text(endpoint const& where) {
    return fmt::format("{}/{}/{}/{}", where.host, where.port, join(where.addresses, ","), to_digits(where.key));
}

endpoint parse_endpoint(std::string_view text, std::string_view origin) {
    auto const parts = split(text, '/');
    if (parts.size() != 4) throw parse_error(origin, text, text.size(), "expected HOST/PORT/ADDRESSES/KEY of a rank");
    endpoint where;
    where.host = parts[0];
    auto const port = parse_integer(parts[1]);
    if (!port || *port < 1 || *port > 65535) refuse_text(origin, text, parts[1], "a port is expected here");
    where.port = static_cast<int>(*port);
    for (auto const each : split(parts[2], ',')) {
        if (parse_address(std::string(each), where.port).length == 0 || where.addresses.size() == most_addresses)
            refuse_text(origin, text, each, "a numeric address is expected here, and at most 8 of them");
        where.addresses.emplace_back(each);
    }
    auto const key = parse_digits(parts[3]);
    if (!key) refuse_text(origin, text, parts[3], "a key of 64 hexadecimal digits is expected here");
    where.key = *key;
    return where;
}

std::vector<std::string> addresses_to_publish(std::string const& interface) {
    std::vector<std::string> addresses, last;
    auto const found = interface.empty() ? own_addresses() : addresses_of(interface, "the network interface");
    for (auto const& each : found)
        (interface.empty() && !why_not_unique(each.interface, each.address).empty() ? last : addresses).push_back(each.address);
    if (addresses.empty()) addresses = std::move(last);
    if (addresses.empty()) addresses.push_back("127.0.0.1");
    addresses.resize(std::min(addresses.size(), most_addresses));
    return addresses;
}

namespace {

/// One bit for each descriptor that is a socket of this module; those with larger numbers stay open in children.
std::array<std::atomic<std::uint64_t>, 1024> open_sockets{};

std::atomic<std::uint64_t>* word_of(int fd) noexcept {
    auto const at = static_cast<std::size_t>(fd) / 64;
    return fd >= 0 && at < open_sockets.size() ? &open_sockets[at] : nullptr;
}

void close_in_child() noexcept {
    for (std::size_t at = 0; at < open_sockets.size(); ++at)
        for (std::uint64_t bits = open_sockets[at].exchange(0); bits != 0; bits &= bits - 1)
            ::close(static_cast<int>(at * 64) + __builtin_ctzll(bits));
}

[[maybe_unused]] int const registered = ::pthread_atfork(nullptr, nullptr, close_in_child);

bool only_here(std::string const& interface) {
    return interface == "lo";
}

}  // namespace

unique_socket own_socket(int fd) noexcept {
    if (auto* const word = word_of(fd)) word->fetch_or(std::uint64_t{1} << (fd % 64));
    return unique_socket(fd);
}

void socket_traits::close(int fd) noexcept {
    if (auto* const word = word_of(fd)) word->fetch_and(~(std::uint64_t{1} << (fd % 64)));
    ::close(fd);
}

rank_listener& rank_listener::on(std::string const& interface) {
    static std::mutex guard;
    // Worlds may outlive what is destroyed at the end, so the map is never destroyed. A forked child, whose sockets are closed,
    // opens its own.
    static auto* const opened = new std::map<std::pair<unsigned, std::string>, std::unique_ptr<rank_listener>>;
    std::scoped_lock const lock(guard);
    auto& made = (*opened)[{detail::count_forks(), interface}];
    if (!made) made.reset(new rank_listener(interface));
    return *made;
}

rank_listener::rank_listener(std::string const& interface) {
    addresses_ = only_here(interface) ? std::vector<std::string>{"127.0.0.1"} : addresses_to_publish(interface);
    auto made = interface.empty() ? listen_on_all() : listen_on(addresses_.front());
    if (!interface.empty()) addresses_.resize(1);
    if (::fcntl(made.socket.get(), F_SETFL, O_NONBLOCK) != 0) throw_system("fcntl", "of a listening socket");
    socket_ = own_socket(made.socket.release());
    port_ = made.port;
}

std::vector<caller> rank_listener::take_callers(world_id const& world) {
    std::vector<caller> own;
    std::unique_lock const lock(guard_, std::try_to_lock);
    if (!lock.owns_lock()) return own;
    accept_all();
    for (auto& each : unproven_) {
        if (!each.what) hear(each);
        if (each.what && each.what->world == world) own.push_back({std::move(each.socket), *each.what, each.text});
    }
    auto const now = clock::now();
    std::erase_if(unproven_, [&](caller_so_far const& each) { return !each.socket || now - each.since > patience; });
    return own;
}

void rank_listener::accept_all() {
    for (;;) {
        unique_socket next = own_socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!next && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (!next) return;
        if (unproven_.size() == most_waiting) unproven_.erase(unproven_.begin());
        caller_so_far& come = unproven_.emplace_back();
        come.socket = std::move(next);
        come.since = clock::now();
    }
}

/// Reads the part of its greeting that has come; closes the socket if it is something else.
void rank_listener::hear(caller_so_far& one) {
    auto const got = ::recv(one.socket.get(), one.text.data() + one.got, one.text.size() - one.got, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return one.socket.reset();
    one.got += static_cast<std::size_t>(got);
    if (one.got < one.text.size()) return;
    one.what = read_greeting(one.text);
    if (!one.what) one.socket.reset();
}

std::string address_of_this_process(std::string const& host, std::string const& interface) {
    rank_listener const& own = rank_listener::on(interface);
    return to_text({host, own.port(), own.addresses(), own.keys().open});
}

}  // namespace muster::tcp
