// The socket by which a rank of an elastic run hears from its launcher (MUSTER_EVENTS), as the process that starts the rank holds it.
#pragma once

#include <functional>
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
    /// Drops it where nothing reads.
    void send(std::string_view packet) const noexcept;
    /// A rank that waits for a packet sees that none comes.
    void close() noexcept;

  private:
    void read();

    unique_fd ours_, theirs_;
    event_loop* loop_ = nullptr;
    std::function<void(std::string_view)> take_;
};

}  // namespace muster
