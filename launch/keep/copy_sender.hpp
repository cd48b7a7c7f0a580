// Sends copies of ranks' states to another node's keeper, in the background.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "launch/keep/kept_store.hpp"
#include "launch/system/event_loop.hpp"

namespace muster {

/// Says where a keeper listens, and the key by which it recognises its peers.
struct keeper_address {
    std::string address;
    int port = 0;
    std::string key;
    bool operator==(keeper_address const&) const = default;
};

/// Sends from its own thread, since connecting and encrypting take long, with at most a few unacknowledged pieces on their way.
class copy_sender {
  public:
    struct item {
        kept_store const* store = nullptr;
        kept_store::copy what;
        bool for_neighbour = false;
    };

    /// `on_end` gets the fault, or nothing if all copies are whole there; it is called once, from the loop, but not after the
    /// destructor, which stops the sending.
    copy_sender(event_loop& loop, keeper_address to, std::vector<item> items,
                std::function<void(std::string const& fault)> on_end);
    ~copy_sender();
    copy_sender(copy_sender const&) = delete;
    copy_sender& operator=(copy_sender const&) = delete;

  private:
    void send_all();

    event_loop& loop_;
    keeper_address to_;
    std::vector<item> items_;
    std::string fault_;
    std::atomic<int> socket_{-1};
    std::atomic<bool> stop_{false};
    unique_fd ended_read_, ended_write_;
    std::thread thread_;
};

}  // namespace muster
