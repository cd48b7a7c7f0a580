// TCP ports picked and held until the ranks start.
#pragma once

#include <vector>

#include "base/unique_fd.hpp"

namespace muster {

/// Ports bound on all interfaces of this node, so that no other process gets them; released by the destructor or `release`, which must
/// come right before the ranks start. They lie below the kernel's range for outgoing connections, so that in the moment between
/// release and the rank's own bind no other connection takes them.
class held_ports {
  public:
    /// Throws errc::unavailable if there are not `count` free ports.
    explicit held_ports(int count);
    std::vector<int> const& numbers() const noexcept { return numbers_; }
    void release() noexcept { sockets_.clear(); }

  private:
    std::vector<int> numbers_;
    std::vector<unique_fd> sockets_;
};

}  // namespace muster
