// Sends what a rank prints to the launcher.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "launch/ranks/output_writer.hpp"
#include "launch/wire/agent_frame.hpp"

namespace muster {

/// Gives pieces to a connection, in order, and never more than the launcher has made room for: what the connection holds of them is
/// bounded, so that other messages are not kept waiting behind output that nobody reads. The rest waits here. Used from one thread.
class output_sender final : public output_sink {
  public:
    /// `send` takes the bytes of a frame. `room` bytes may be sent at first.
    output_sender(std::function<void(std::string_view frame)> send, std::size_t room) : send_(std::move(send)), room_(room) {}

    void write(int fd, std::string block, void const* stream = nullptr) override;
    void note(std::string line) override;
    /// Something waits for room.
    bool congested() const override { return !waiting_.empty(); }
    bool sent_all() const noexcept { return waiting_.empty(); }

    /// The launcher takes so many bytes more.
    void add_room(std::size_t bytes);
    /// The connection is gone: what waits is dropped, and what comes.
    void close();

  private:
    struct block {
        wire::output_piece::kind what;
        std::string bytes;
        std::size_t sent = 0;
    };
    void push(wire::output_piece::kind what, std::string bytes);
    void send_some();

    std::function<void(std::string_view)> send_;
    std::size_t room_;
    bool closed_ = false;
    std::deque<block> waiting_;
};

}  // namespace muster
