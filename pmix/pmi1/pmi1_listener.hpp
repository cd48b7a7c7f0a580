// The port of the PMI-1 server: takes connections of this user's processes on this machine, some at a time, and refuses others.
#pragma once

#include <cstdint>
#include <vector>

#include "base/unique_fd.hpp"
#include "pmix/library/peer_uid.hpp"
#include "pmix/server/server_job.hpp"

namespace muster::pmix {

/// A port of the loopback device. Any process of the machine may call there as often as it likes: each call of `accept_some` does
/// a limited amount of work. Single-threaded.
class pmi1_listener {
  public:
    /// Throws errc::system.
    pmi1_listener();

    int fd() const noexcept { return listener_.get(); }  ///< readable while somebody waits
    std::uint16_t port() const noexcept { return port_; }

    /// Those of the next few callers who come from 127.0.0.1 and are processes of this user, as the kernel says; the others, and
    /// all for whom there is no file descriptor left, are closed. Of refused ones an event tells the first, the 10th, the 100th …
    std::vector<unique_fd> accept_some(std::vector<server_event>& events);

    static constexpr int callers_a_turn = 16;

  private:
    void refuse(std::optional<uid_t> who, std::vector<server_event>& events);
    bool shed_one() noexcept;

    unique_fd listener_;
    std::uint16_t port_;
    peer_uid_lookup users_;
    unique_fd spare_;  ///< given up for a moment to close a caller for whom there is no descriptor
    std::uint64_t refused_ = 0;
    std::uint64_t told_at_ = 1;
};

}  // namespace muster::pmix
