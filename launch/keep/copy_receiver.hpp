// Takes copies of ranks' states from other nodes' keepers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "launch/keep/kept_store.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/shim_listener.hpp"

namespace muster {

/// One copy on the way: fed with frames, it answers each. What has not come to its end, or has another checksum then, is no copy.
class copy_intake {
  public:
    copy_intake(kept_store& own, kept_store& of_others) : own_(own), of_others_(of_others) {}
    /// The answer; never throws for what a frame says.
    std::string take(std::string_view frame);

  private:
    kept_store& own_;
    kept_store& of_others_;
    kept_store* store_ = nullptr;
    std::optional<kept_store::copy> now_;
    std::uint64_t come_ = 0;
};

/// Listens for keepers that prove that they have the key of this one, which only the process knows that holds the run together.
class copy_receiver {
  public:
    copy_receiver(event_loop& loop, std::size_t nodes, kept_store& own, kept_store& of_others);

    int port() const noexcept { return listener_.port(); }
    std::string key() const { return to_text(listener_.key()); }

  private:
    struct sender {
        std::unique_ptr<frame_channel> link;
        copy_intake intake;
    };
    void on_arrival(std::unique_ptr<frame_channel>& link);

    event_loop& loop_;
    kept_store& own_;
    kept_store& of_others_;
    std::map<std::uint64_t, sender> senders_;
    std::uint64_t next_ = 0;
    shim_listener listener_;
};

}  // namespace muster
