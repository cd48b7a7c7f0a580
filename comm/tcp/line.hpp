// The connection to one other rank. It sends and receives messages in a fixed order in each direction, without blocking.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "comm/backend/collective_backend.hpp"
#include "comm/tcp/listener.hpp"

namespace muster::tcp {

// The header of a message between two ranks, and its reader.

/// The header of every message. Both ends know the order of their messages, so the fields of `data` only show whether they agree.
struct frame {
    enum class kind : std::uint16_t {
        data = 1,
        left = 2,     ///< this end has destroyed its communicator; nothing follows
        gave_up = 3,  ///< it will send no more data; the bytes are its blame (write_blame)
        waits =
            4,  ///< it waits for others itself, in the collective of this sequence and signature: the bytes name them (write_blame)
    };
    kind what = kind::data;
    std::uint16_t step = 0;       ///< of a collective with several steps
    std::uint32_t sequence = 0;   ///< of the collective, or of the sendrecv of these two ranks
    std::uint64_t signature = 0;  ///< signature_of()
    std::uint64_t count = 0;      ///< elements of the collective, or of this message if each has its own
    std::uint64_t bytes = 0;      ///< bytes that follow
    bool operator==(frame const&) const = default;
};

inline constexpr std::size_t frame_bytes = 4 + 2 + 2 + 4 + 3 * 8;
inline constexpr std::size_t longest_blame = 2048;
using frame_text = std::array<std::byte, frame_bytes>;

frame_text write_frame(frame const& what) noexcept;

/// Returns nothing if the frame_bytes `bytes` are not a header, or one of another kind than data with more than longest_blame behind it.
/// Pure.
std::optional<frame> read_frame(std::span<std::byte const> bytes) noexcept;

/// Counts unfinished messages.
struct transfers {
    unsigned left = 0;
    bool through() const noexcept { return left == 0; }
};

/// Messages may be given before there is a connection. Both ends give theirs in the same order: either the first message that arrives is
/// the first expected one, or the ranks disagree. A message that nobody expects yet stays in the socket, which makes the other end wait.
/// Not thread safe.
class line {
  public:
    /// The way in which it ended for good.
    enum class end {
        none,
        lost,     ///< the other process, its machine or the network is gone
        left,     ///< the other rank has destroyed its communicator
        gave_up,  ///< the other rank says so; words() is its blame
        differs,  ///< the other rank is in another collective; see got() and expected()
    };

    /// Sends and receives over this connected socket from now on.
    void open(unique_socket socket);
    bool is_open() const noexcept { return static_cast<bool>(socket_); }
    int socket() const noexcept { return socket_.get(); }
    void close() noexcept { socket_.reset(); }

    /// `data` stays valid and unchanged until `counts` is through. `owner`: the collective.
    void send(ticket owner, frame const& head, std::byte const* data, transfers& counts);
    void receive(ticket owner, frame const& head, std::byte* to, transfers& counts);
    /// Sends a message without data after the others; `words` has at most longest_blame bytes.
    void tell(frame head, std::string words);

    /// Sends and receives what is possible now. `look`: also if nothing is expected, to learn of the other rank's end.
    void pump(bool look);

    end ended() const noexcept { return end_; }
    std::string const& words() const noexcept { return words_; }
    /// Returns whom the other rank said it waits for in the collective of the first expected message; or "".
    std::string_view excuse() const noexcept;
    frame const& got() const noexcept { return got_; }
    frame const& expected() const noexcept { return coming_.front().head; }

    /// Ends the line from outside: there will be no connection.
    void lose(std::string words);

    bool wants_to_send() const noexcept { return !going_.empty(); }
    bool wants_to_receive() const noexcept { return !coming_.empty(); }
    bool waits_for(ticket owner) const noexcept;

    /// Forgets all messages, and receives no more. A message that is partly sent goes on from a copy; a very long one ends the connection.
    void drop();

    /// Sends what is left after drop() and the last tell(), and forgets what comes. Returns whether the other end, or its kernel, still has to take some of it:
    /// a connection that is closed before, or with something unread, loses it.
    bool part() noexcept;

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
    bool has_unexpected() const noexcept;
    bool begin_message();
    bool take_data();
    bool fill(bool& nothing);
    void finish(end how, std::string words);

    unique_socket socket_;
    std::deque<outgoing> going_;
    std::size_t sent_ = 0;  // bytes of the first one
    bool deaf_ = false;     // the other end takes no more
    bool stopped_ = false;  // receives nothing any more
    bool parted_ = false;   // sends nothing any more
    std::deque<incoming> coming_;
    bool within_ = false;   // the first one's header has come
    std::size_t done_ = 0;  // … and this many of its bytes
    std::unique_ptr<std::byte[]> staging_;
    std::size_t first_ = 0, filled_ = 0;  // the filled part
    std::string closed_;                  // why nothing comes any more, once all that came has been read from the socket
    end end_ = end::none;
    std::string words_;
    std::string excuse_;
    frame excused_;
    frame got_;
};

}  // namespace muster::tcp
