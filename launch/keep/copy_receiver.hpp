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

/// Takes one copy, frame by frame, and answers each. A copy without an end, or with a wrong checksum, does not count.
class copy_intake {
  public:
    copy_intake(kept_store& own, kept_store& of_others) : own_(own), of_others_(of_others) {}
    /// Returns the answer; never throws for a frame's content.
    std::string take(std::string_view frame);

  private:
    kept_store& own_;
    kept_store& of_others_;
    kept_store* store_ = nullptr;
    std::optional<kept_store::copy> now_;
    std::uint64_t come_ = 0;
};

/// Listens for keepers that prove that they have this one's key, which only the process that leads the keepers knows.
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
