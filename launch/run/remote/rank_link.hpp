// The launcher's link to one rank's shim, over the connection of its host's agent or the shim's own.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "base/units.hpp"
#include "launch/wire/frame_channel.hpp"

namespace muster {

/// Each shim has its own connection with engines other than remote. A shim below an agent connects only after the agent has gone
/// or stands still, and that connection is then used. Used from the loop's thread.
class rank_link {
  public:
    void set_own(std::unique_ptr<frame_channel> own) { own_ = std::move(own); }
    void set_host(std::shared_ptr<frame_channel> host, int rank) { host_ = std::move(host), rank_ = rank; }
    void drop_host() noexcept { host_.reset(); }

    bool has_own() const noexcept { return own_ && own_->open(); }
    bool has_host() const noexcept { return host_ && host_->open(); }
    bool open() const noexcept { return has_own() || has_host(); }
    /// Returns whether the shim has closed its own connection, of which the loop may not have told yet.
    bool has_lost_shim() const noexcept { return has_own() && own_->has_lost_peer(); }
    /// Does nothing if neither connection is open.
    void send(std::string_view frame) {
        if (has_own())
            own_->send(frame);
        else if (has_host())
            host_->send(wire::encode(wire::rank_frame{rank_, frame}));
    }
    /// Sends what must not be lost: the shim closes its own connection once its agent answers again.
    void send_surely(std::string_view frame) {
        if (has_host())
            host_->send(wire::encode(wire::rank_frame{rank_, frame}));
        else
            send(frame);
    }
    void flush(duration limit) noexcept {
        if (auto* const way = has_own() ? own_.get() : host_.get()) way->flush(limit);
    }

  private:
    std::unique_ptr<frame_channel> own_;
    std::shared_ptr<frame_channel> host_;
    int rank_ = -1;
};

}  // namespace muster
