// Messages over one TCP connection between the launcher and a rank shim.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"
#include "base/units.hpp"
#include "launch/system/event_loop.hpp"

namespace muster {

/// A connected socket that carries frames: four bytes of length, most significant first, then so many bytes. Never blocks; used
/// from the loop's thread. Callbacks must not destroy the channel; they may close it.
class frame_channel {
  public:
    struct callbacks {
        std::function<void(std::string_view frame)> on_frame;
        std::function<void(std::string const& reason)> on_closed;  ///< by the peer or by a fault; not by `close`
    };

    static constexpr std::string_view closed_by_peer = "the connection was closed";  ///< a reason

    /// Takes over `socket`. `largest_frame` guards against a peer that is not one of ours.
    frame_channel(event_loop& loop, unique_fd socket, callbacks what_to_do, std::size_t largest_frame);
    ~frame_channel();
    frame_channel(frame_channel const&) = delete;
    frame_channel& operator=(frame_channel const&) = delete;

    /// Queues a frame; what the socket does not take at once is sent when it does. Nothing if the channel is closed.
    void send(std::string_view frame);
    void close() noexcept;
    bool open() const noexcept { return static_cast<bool>(socket_); }
    bool sent_all() const noexcept { return waiting_.empty(); }
    /// Also from within a callback: the next frame goes to the new one.
    void set_callbacks(callbacks what_to_do, std::size_t largest_frame);

    /// Sends what waits, at most for `limit`: for a last message before the process ends.
    void flush(duration limit) noexcept;

  private:
    void on_readable();
    void take_frames();
    void write_some();
    void fail(std::string const& reason);

    event_loop& loop_;
    unique_fd socket_;
    unique_fd writer_;  ///< the same socket, watched for room: the loop knows one callback a descriptor
    std::shared_ptr<callbacks const> do_;
    std::size_t largest_frame_;
    std::string received_;
    std::string waiting_;
};

/// Makes the kernel notice within `limit` that the other end's machine is gone: keep-alive probes when nothing is sent, and a
/// limit on what stays unacknowledged. A process that is merely stopped does not count as gone.
void detect_lost_peer(int socket, duration limit) noexcept;

}  // namespace muster
