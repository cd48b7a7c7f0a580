// The launcher's way to one rank's shim: the connection of its host's agent, or the shim's.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "base/units.hpp"
#include "launch/wire/frame_channel.hpp"

namespace muster {

/// Engines other than remote give each shim its own connection. Below an agent it has one only once the agent is gone or stands
/// still, and that is then the way. Used from the loop's thread.
class rank_link {
  public:
    void set_own(std::unique_ptr<frame_channel> own) { own_ = std::move(own); }
    void set_host(std::shared_ptr<frame_channel> host, int rank) { host_ = std::move(host), rank_ = rank; }
    void drop_host() noexcept { host_.reset(); }

    bool has_own() const noexcept { return own_ && own_->open(); }
    bool has_host() const noexcept { return host_ && host_->open(); }
    bool open() const noexcept { return has_own() || has_host(); }
    /// Nothing where neither is open.
    void send(std::string_view frame) {
        if (has_own())
            own_->send(frame);
        else if (has_host())
            host_->send(wire::encode(wire::rank_frame{rank_, frame}));
    }
    /// The same for what must not be lost: the shim closes its own connection once its agent answers again.
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
