// The connection to one other rank: messages in a fixed order in each direction, sent and received without blocking.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "comm/backend/collective_backend.hpp"
#include "comm/tcp/frame.hpp"
#include "comm/tcp/listener.hpp"

namespace muster::tcp {

/// Counts messages that are not through yet.
struct transfers {
    unsigned left = 0;
    bool through() const noexcept { return left == 0; }
};

/// Messages may be given before there is a connection. Both ends give theirs in the same order: the first that arrives is the first that
/// is expected, or the ranks disagree. What nobody expects yet stays in the socket, which makes the other end wait. Not thread safe.
class line {
  public:
    /// How it ended for good.
    enum class end {
        none,
        lost,     ///< the other process, its machine or the network is gone
        left,     ///< the other rank has destroyed its communicator
        gave_up,  ///< the other rank says so; words() is its blame
        differs,  ///< the other rank is at another collective; see got() and expected()
    };

    /// From now on messages go over this connected socket.
    void open(unique_socket socket);
    bool is_open() const noexcept { return static_cast<bool>(socket_); }
    int socket() const noexcept { return socket_.get(); }
    void close() noexcept { socket_.reset(); }

    /// `data` stays valid, and unchanged, until `counts` is through. `owner`: the collective.
    void send(ticket owner, frame const& head, std::byte const* data, transfers& counts);
    void receive(ticket owner, frame const& head, std::byte* to, transfers& counts);
    /// A message without data behind what is sent already; words of at most longest_blame.
    void tell(frame head, std::string words);

    /// Sends and receives what is possible now. `look`: also where nothing is expected, for word of the other rank's end.
    void pump(bool look);

    end ended() const noexcept { return end_; }
    std::string const& words() const noexcept { return words_; }
    /// Whom the other rank said it waits for in the collective that the first message expected is of; or "".
    std::string_view excuse() const noexcept;
    frame const& got() const noexcept { return got_; }
    frame const& expected() const noexcept { return coming_.front().head; }

    /// From outside: there will be no connection.
    void lose(std::string words);

    bool wants_to_send() const noexcept { return !going_.empty(); }
    bool wants_to_receive() const noexcept { return !coming_.empty(); }
    bool waits_for(ticket owner) const noexcept;

    /// Forgets all messages, and receives no more. What of one is on its way already goes out from a copy; a very long one ends the connection.
    void drop();

  private:
    struct outgoing {
        ticket owner;
        frame head;
        frame_text text;
        std::byte const* data;
        transfers* counts;
        std::string own;
    };
    struct incoming {
        ticket owner;
        frame head;
        std::byte* to;
        transfers* counts;
    };
    static constexpr std::size_t staging_bytes = std::size_t{64} << 10;

    void flush();
    bool begin_message();
    bool take_data();
    bool fill(bool& nothing);
    void finish(end how, std::string words);

    unique_socket socket_;
    std::deque<outgoing> going_;
    std::size_t sent_ = 0;  // of the first
    bool deaf_ = false;     // the other end takes no more
    bool stopped_ = false;  // nothing is received any more
    std::deque<incoming> coming_;
    bool within_ = false;   // the first one's header has come
    std::size_t done_ = 0;  // … and so many of its bytes
    std::unique_ptr<std::byte[]> staging_;
    std::size_t first_ = 0, filled_ = 0;  // what is in it
    end end_ = end::none;
    std::string words_;
    std::string excuse_;
    frame excused_;
    frame got_;
};

}  // namespace muster::tcp
