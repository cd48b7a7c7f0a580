// The socket by which the launcher of an elastic run talks to a rank (MUSTER_EVENTS), as the process that starts the rank holds
// it.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"
#include "launch/system/event_loop.hpp"

namespace muster {

/// Sends packets unchanged (pmix/member_message.hpp). Move-only; used from one thread.
class member_socket {
  public:
    /// Makes an empty one: child_fd() is -1, and send() does nothing.
    member_socket() = default;
    /// Throws errc::system.
    static member_socket make();

    /// Returns the rank's end, for its start.
    int child_fd() const noexcept { return theirs_.get(); }
    /// Closes the rank's end, after the rank has been started.
    void close_child_end() noexcept { theirs_.reset(); }

    /// Calls `take` with each packet from the rank, until close(). `loop` must outlive that, and this object must not move
    /// meanwhile.
    void watch(event_loop& loop, std::function<void(std::string_view packet)> take);
    /// Queues the packet while there is no room, such as while the rank is stopped. Drops it if no process has the rank's end any
    /// more.
    void send(std::string_view packet);
    /// Closes it, so that a rank that waits for a packet sees that none will come.
    void close() noexcept;

  private:
    void read();
    bool write(std::string_view packet) noexcept;
    void write_waiting();

    unique_fd ours_, theirs_;
    event_loop* loop_ = nullptr;
    std::function<void(std::string_view)> take_;
    std::deque<std::string> waiting_;
};

}  // namespace muster
