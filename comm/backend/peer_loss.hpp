// A report from outside that ranks of a communicator are lost, or that its world has ended: ends waits at once.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Told by whoever hears of it, once; asked by the threads that wait. Thread safe.
class peer_loss {
  public:
    peer_loss() = default;
    peer_loss(peer_loss const&) = delete;
    peer_loss& operator=(peer_loss const&) = delete;

    /// Reports `ranks`, numbered as in the communicator. A later report adds its ranks and keeps the first `why`.
    void tell(std::string_view why, std::vector<int> const& ranks);
    bool is_told() const noexcept { return told_.load(std::memory_order_acquire); }

    /// Throws comm_error (errc::peer_failed) if it was told; `speaker` is who cannot go on.
    void throw_if_told(std::string_view speaker) const;

    /// Sets what a report calls, on the thread of tell(); if there was one already, calls it at once. Null removes it, and returns after a call
    /// that is under way.
    void when_told(std::function<void()> call);

  private:
    std::atomic<bool> told_{false};
    mutable std::mutex guard_;  // of what follows
    std::string why_;
    std::vector<int> ranks_;
    std::function<void()> call_;
};

}  // namespace muster
