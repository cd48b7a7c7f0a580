// The listening socket of this process for all of its worlds over TCP, with its address and key, and the sockets that a forked child must not
// keep.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"
#include "comm/tcp/handshake.hpp"

namespace muster::tcp {

// The place where a rank listens for the others, and the public key by which they recognise it. It travels as text through PMIx, a store or a
// variable.

struct endpoint {
    std::string host;  ///< for messages
    int port = 0;
    std::vector<std::string> addresses;  ///< numeric; tried in this order
    public_key key{};
    bool operator==(endpoint const&) const = default;
};

/// Returns "n1/4711/10.0.0.1,fd00::1/KEY", with the key in hexadecimal digits. Pure.
std::string to_text(endpoint const& where);

/// Reads such a text. `origin` begins the message. Throws parse_error. Pure.
endpoint parse_endpoint(std::string_view text, std::string_view origin);

/// Returns the addresses to publish: those of `interface` if it is given, else those that other machines may reach, or the loopback if
/// it has no such addresses. Throws errc::usage for an interface without addresses, errc::system.
std::vector<std::string> addresses_to_publish(std::string const& interface);

/// A socket that a forked child closes at once: otherwise the other rank would not see this process end while the child lives.
struct socket_traits {
    using type = int;
    static type null() noexcept { return -1; }
    static void close(type fd) noexcept;
};
using unique_socket = unique_handle<socket_traits>;
/// Takes over a new descriptor, or -1.
unique_socket own_socket(int fd) noexcept;

/// A process that connected and greeted a world of this process; it has proven nothing yet.
struct caller {
    unique_socket socket;
    greeting what;
    greeting_text text{};
};

/// It has no thread: it accepts callers when a world asks for its own. Of callers that have not greeted, and of those that no world asks
/// for, it keeps at most `most_waiting`, for at most `patience`, and closes the oldest first; a rank tries again. Thread safe.
class rank_listener {
  public:
    using clock = std::chrono::steady_clock;
    static constexpr std::size_t most_waiting = 256;
    static constexpr std::chrono::seconds patience{10};

    /// Returns the listener of this process on this interface ("lo": only this machine; "": all), opened at the first call and kept to the
    /// end. Throws errc::usage, errc::system.
    static rank_listener& on(std::string const& interface);

    int port() const noexcept { return port_; }
    std::vector<std::string> const& addresses() const noexcept { return addresses_; }
    key_pair const& keys() const noexcept { return keys_; }
    int socket() const noexcept { return socket_.get(); }

    /// Returns those that greeted this world since the last call. Does not block; returns nobody while another thread is in it.
    std::vector<caller> take_callers(world_id const& world);

  private:
    explicit rank_listener(std::string const& interface);
    struct caller_so_far {
        unique_socket socket;
        greeting_text text{};
        std::size_t got = 0;
        clock::time_point since;
        std::optional<greeting> what;
    };
    void accept_all();
    void hear(caller_so_far& one);

    std::mutex guard_;
    unique_socket socket_;
    int port_ = 0;
    std::vector<std::string> addresses_;
    key_pair keys_ = make_key_pair();
    std::vector<caller_so_far> unproven_;  // the oldest first
};

/// Returns where the ranks of other processes reach this one by that interface, as text for them (to_text). Throws as
/// rank_listener::on().
std::string address_of_this_process(std::string const& host, std::string const& interface);

}  // namespace muster::tcp
