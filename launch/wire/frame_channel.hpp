// Messages over one TCP connection between the launcher and a rank shim, and the frames that are not messages.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/process/network.hpp"
#include "base/unique_fd.hpp"
#include "base/units.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/wire/secure_session.hpp"

namespace muster {

/// A connected socket that carries frames: four bytes of length, most significant first, then that many bytes, which are sealed
/// once `secure` was called. Never blocks; used from the loop's thread. Takes no more memory for a frame than was received of it,
/// and for waiting frames little more than the frames themselves: it seals them in pieces of 16 KiB, as the socket takes them.
/// Callbacks must not destroy the channel; they may close it.
class frame_channel {
  public:
    struct callbacks {
        std::function<void(std::string_view frame)> on_frame;
        std::function<void(std::string const& reason)> on_closed;  ///< by the peer or a fault; not by `close`
    };

    static constexpr std::string_view closed_by_peer = "the connection was closed";  ///< a reason

    /// Takes over `socket`. `largest_frame` guards against a peer that is not a part of muster.
    frame_channel(event_loop& loop, unique_fd socket, callbacks what_to_do, std::size_t largest_frame);
    ~frame_channel();
    frame_channel(frame_channel const&) = delete;
    frame_channel& operator=(frame_channel const&) = delete;

    /// Queues a frame; the socket gets later what it does not take at once. Does nothing if the channel is closed.
    void send(std::string_view frame);
    /// Does the same for a frame that goes to many: all share one copy.
    void send(std::shared_ptr<std::string const> frame);
    /// Seals what is sent from now on, and requires the next frames to open. May be called within a callback.
    void secure(std::unique_ptr<secure_session> session) { session_ = std::move(session); }
    void close() noexcept;
    bool open() const noexcept { return static_cast<bool>(socket_); }
    /// Returns whether the peer has sent what this end has not read yet.
    bool has_unread() const noexcept;
    /// Returns whether the peer has closed the connection, although what it sent before may not have been read yet.
    bool has_lost_peer() const noexcept;
    bool sent_all() const noexcept { return waiting_.empty() && ready_.empty(); }
    /// May be called within a callback: the next frame goes to the new one.
    void set_callbacks(callbacks what_to_do, std::size_t largest_frame);
    void set_largest_frame(std::size_t bytes) noexcept { largest_frame_ = bytes; }

    /// Sends what waits, for at most `limit`: for a last message before the process ends.
    void flush(duration limit) noexcept;

  private:
    void on_readable();
    void take_frames();
    bool take(std::string_view frame);
    void make_ready();
    bool write_ready();
    void write_some();
    void fail(std::string const& reason);

    event_loop& loop_;
    unique_fd socket_;
    bool waits_for_room_ = false;
    std::shared_ptr<callbacks const> do_;
    std::size_t largest_frame_;
    std::unique_ptr<secure_session> session_;  ///< null: frames are not sealed
    std::string received_;
    std::string pieces_;  ///< the beginning of a frame of which more follows
    struct waiting_frame {
        std::shared_ptr<std::string const> bytes;
        bool sealed;           ///< it was queued after `secure`
        std::size_t done = 0;  ///< the bytes of it that are in `ready_`, or sent
    };
    std::deque<waiting_frame> waiting_;
    std::string ready_;     ///< bytes for the socket
    std::size_t sent_ = 0;  ///< bytes of `ready_`
};

/// Returns the bytes on the wire of a frame that is not sealed.
std::string with_frame_header(std::string_view frame);
constexpr std::size_t frame_header_bytes = 4;
/// Returns the length in a header of `frame_header_bytes`.
std::size_t frame_size(std::string_view header);

}  // namespace muster

// Frames of a host's agent in a remote run: those of its ranks on its one connection to the launcher, and its messages to a shim
// on its host.

namespace muster::wire {

// A piece of a rank's output as a frame between its shim and the launcher.

/// One byte for the kind, then the bytes as they are. No message begins with such a byte.
struct output_piece {
    enum class kind : unsigned char {
        note = 0,  ///< a whole line from the shim itself, for standard error
        out = 1,   ///< a piece of the rank's standard output
        err = 2,   ///< a piece of its standard error
    };
    kind what = kind::out;
    std::string_view bytes;
    bool operator==(output_piece const&) const = default;
};

std::string encode(output_piece const& piece);

/// Returns nothing for any other frame, such as a message. The piece refers to the frame.
std::optional<output_piece> read_output(std::string_view frame) noexcept;

constexpr std::size_t largest_output_bytes = 64u << 10;  ///< for one piece

}  // namespace muster::wire

namespace muster {

namespace wire {

/// A frame from or for one rank's shim: the agent passes it on as it is.
struct rank_frame {
    enum class kind : unsigned char {
        frame = 0x10,   ///< no message and no piece of output begins like this
        closed = 0x11,  ///< from the agent: the rank's shim has ended or closed its socket
    };
    static constexpr int all = -1;  ///< all ranks of the host, from the launcher

    int rank = all;
    std::string_view bytes;
    kind what = kind::frame;
    bool operator==(rank_frame const&) const = default;
};

std::string encode(rank_frame const& one);
/// Returns nothing for any other frame. Refers to `frame`.
std::optional<rank_frame> read_rank_frame(std::string_view frame) noexcept;

}  // namespace wire

/// Holds what an agent and a shim tell each other, between frames of the launcher, over the socket that is the shim's descriptor
/// 1: what the agent's server of PMIx or PMI-1 has seen of the rank, and that the agent runs.
struct mpi_event {
    enum class kind : int {
        connected,  ///< it has initialised its PMI library
        finalized,  ///< it has finalised its PMI library
        aborted,    ///< it asks for the whole job to end with `code`, and may wait until it is killed
        settled,    ///< from a shim: the rank has ended; the answer: everything before that has been reported
        ping,       ///< from a shim; the answer: the agent runs
    };
    kind what = kind::connected;
    int code = 0;
    bool operator==(mpi_event const&) const = default;
};

std::string encode(mpi_event const& event);
/// Returns nothing for a frame from the launcher.
std::optional<mpi_event> read_event(std::string_view frame) noexcept;

/// Set for a shim whose descriptor 1 is such a socket: it carries frames of frame_channel.hpp, not sealed, since nobody else can
/// reach them.
inline constexpr char agent_socket_variable[] = "MUSTER_AGENT_SOCKET";

}  // namespace muster
