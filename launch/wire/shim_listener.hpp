// Listens for the shims of a run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "launch/system/event_loop.hpp"
#include "launch/system/network.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/messages.hpp"
#include "launch/wire/token.hpp"

namespace muster {

/// Listens on all addresses, shows each caller the launcher's half of the token, and passes on those that know the other half.
/// Used from the loop's thread.
class shim_listener {
  public:
    /// Takes `link` over (and sets its callbacks), or leaves it: then that shim is told to end (wire::bye).
    using arrival = std::function<void(wire::hello const& hello, std::unique_ptr<frame_channel>& link)>;

    /// A caller's machine counts as gone when it is silent for `lost_after`. Throws errc::system.
    shim_listener(event_loop& loop, duration lost_after, arrival on_arrival);
    ~shim_listener();
    shim_listener(shim_listener const&) = delete;
    shim_listener& operator=(shim_listener const&) = delete;

    /// MUSTER_LAUNCHER, with this machine's addresses (of one `interface`, if that is given), and MUSTER_TOKEN.
    std::vector<std::pair<std::string, std::string>> shim_variables(std::string const& interface) const;

  private:
    void on_caller();
    void on_first_frame(std::uint64_t from, std::string_view frame);
    void forget(std::uint64_t which);

    event_loop& loop_;
    duration lost_after_;
    arrival on_arrival_;
    token token_;
    listener listener_;
    std::map<std::uint64_t, std::unique_ptr<frame_channel>> callers_;  ///< connections that have not yet said who they are
    std::uint64_t next_caller_ = 0;
};

}  // namespace muster
