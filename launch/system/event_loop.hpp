// The event loop of the launcher and of its shims: one thread, one epoll set.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>

#include "base/unique_fd.hpp"
#include "base/units.hpp"

namespace muster {

/// Calls back when descriptors are ready and when timers are due. Single-threaded; callbacks may watch, unwatch, set and cancel
/// anything.
class event_loop {
  public:
    using clock = std::chrono::steady_clock;
    using callback = std::function<void()>;
    using timer = std::uint64_t;

    event_loop();

    void watch_readable(int fd, callback when_ready);  ///< readable or hung up; level-triggered; throws errc::system
    void watch_writable(int fd, callback when_ready);
    /// Also reports, for a descriptor that `watch_readable` watches, when there is room to write, until `unwatch_room`.
    void watch_room(int fd, callback when_ready);
    void unwatch_room(int fd) noexcept;
    /// Reports when the reader of a pipe, or the other end of a socket, has gone. Does nothing for any other `fd`.
    void watch_reader_gone(int fd, callback when_gone);
    void unwatch(int fd) noexcept;  ///< call it before closing; a descriptor that is not watched is no error

    timer after(duration delay, callback when_due);
    void cancel(timer which) noexcept;

    /// Runs until `stop` is called.
    void run();
    void stop() noexcept { running_ = false; }

  private:
    void watch(int fd, std::uint32_t events, callback when_ready);
    int wait_ms() const;
    void fire_due_timers();

    unique_fd epoll_;
    struct callbacks {
        std::shared_ptr<callback> ready;
        std::shared_ptr<callback> room;
    };
    void call(int fd, std::uint32_t events);

    std::unordered_map<int, callbacks> watched_;
    struct due {
        timer id;
        callback call;
    };
    std::multimap<clock::time_point, due> timers_;
    timer next_timer_ = 1;
    bool running_ = false;
};

}  // namespace muster
