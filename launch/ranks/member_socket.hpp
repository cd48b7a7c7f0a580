// The socket by which a rank of an elastic run hears from its launcher (MUSTER_EVENTS), as the process that starts the rank holds it.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"
#include "launch/system/event_loop.hpp"

namespace muster {

/// Packets go as they are (pmix/member_message.hpp). Move-only; used from one thread.
class member_socket {
  public:
    /// None: child_fd() is -1, and nothing is sent.
    member_socket() = default;
    /// Throws errc::system.
    static member_socket make();

    /// The rank's end, for its start.
    int child_fd() const noexcept { return theirs_.get(); }
    /// The rank has been started.
    void close_child_end() noexcept { theirs_.reset(); }

    /// `take` gets each packet of the rank, until close(). `loop` must outlive that, and this object stays where it is meanwhile.
    void watch(event_loop& loop, std::function<void(std::string_view packet)> take);
    /// Behind those that wait until there is room, as where the rank is stopped. Drops it where nothing has the rank's end any more.
    void send(std::string_view packet);
    /// A rank that waits for a packet sees that none comes.
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
