// Listens for the shims of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "launch/system/event_loop.hpp"
#include "launch/system/network.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/messages.hpp"
#include "launch/wire/run_key.hpp"

namespace muster {

/// Listens on all addresses, proves to each caller that it has the run's key, and passes on those that prove the same. Other
/// users of these machines can call, too: their number, their time and the bytes read from them are limited. Used from the loop's
/// thread.
class shim_listener {
  public:
    /// Takes `link` over (and sets its callbacks), or leaves it: then that shim gets the order to end (wire::bye).
    using arrival = std::function<void(wire::hello const& hello, std::unique_ptr<frame_channel>& link)>;

    /// `shims` are expected. A caller's machine counts as lost when it is silent for `lost_after`. Throws errc::system.
    shim_listener(event_loop& loop, std::size_t shims, duration lost_after, arrival on_arrival);
    ~shim_listener();
    shim_listener(shim_listener const&) = delete;
    shim_listener& operator=(shim_listener const&) = delete;

    run_key const& key() const noexcept { return key_; }
    int port() const noexcept { return listener_.port; }

    /// Returns the number of callers that have gone without a proof.
    std::size_t refused() const noexcept { return refused_; }
    std::size_t unnamed() const noexcept { return callers_.size(); }

  private:
    /// A connection that has not yet proved anything.
    struct caller {
        std::unique_ptr<frame_channel> link;
        event_loop::clock::time_point due;  ///< it must prove itself until then
        bool greeted = false;
        std::string from;
    };

    void on_callers();
    bool accept_one();
    /// Returns whether it has spoken, or has just become somebody else's.
    static bool speaks(caller const& one);
    void make_room();
    void admit(unique_fd socket, std::string const& from);
    void on_frame(std::uint64_t from, std::string_view frame);
    void on_greeting(caller& one, std::string_view frame);
    void on_hello(std::uint64_t from, std::string_view frame);
    void refuse(std::uint64_t which, std::string const& why);
    void forget(std::uint64_t which);
    void drop_late();

    event_loop& loop_;
    std::size_t most_callers_;
    duration lost_after_;
    arrival on_arrival_;
    run_key key_;
    listener listener_;
    unique_fd spare_;  ///< a spare descriptor, closed when no other is left, so that callers can be refused
    std::map<std::uint64_t, caller> callers_;  ///< the oldest first
    std::uint64_t next_caller_ = 0;
    std::size_t refused_ = 0;
    bool dropping_ = false;  ///< the next check for late ones is scheduled
};

}  // namespace muster
