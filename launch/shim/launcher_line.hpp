// The line from a rank's shim to the launcher: by the agent on its host, or direct.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/environment.hpp"
#include "base/units.hpp"
#include "launch/ranks/output_writer.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/messages.hpp"

namespace muster {

/// The engine remote gives a shim an agent, which carries what the shim and the launcher tell each other. Where the agent is gone or
/// stands still, and with other engines always, it is a connection to the launcher. Used from one thread.
class launcher_line {
  public:
    struct callbacks {
        std::function<void(wire::message const&)> on_message;
        std::function<void(mpi_event const&)> on_event;  ///< the rank's MPI, as the agent saw it
        std::function<void()> on_left_agent;             ///< all goes direct now; what the agent has not passed on is lost
        std::function<void(std::string const& reason)> on_gone;
    };

    /// `variables` must outlive this. Takes the agent's socket, if there is one, which is standard output.
    launcher_line(event_loop& loop, environment const& variables, std::string host, callbacks calls);

    /// Connects unless there is an agent, and introduces this shim. Throws what connect_to_launcher does.
    void open();
    /// A peer that is silent for so long is gone.
    void set_lost_after(duration limit);
    /// The launcher knows of the rank: from now on it may be called direct instead of by the agent.
    void allow_direct() noexcept { may_leave_ = true; }
    /// Asks the agent, as long as this line goes by it, whether it is there. The launcher need not ask for this: what it sends goes by the
    /// agent. The line is gone if the agent is silent and the launcher has ended.
    void watch_agent();
    /// Leaves the agent if the launcher answers without it.
    bool leave_agent_if_answered();

    void tell(wire::message const& message) { send(wire::encode(message)); }
    void send(std::string_view frame);
    /// To the agent, if there is one.
    void tell_agent(mpi_event::kind what);
    bool is_open() const;
    /// Returns the descriptor of the direct connection, which tells this end's address; -1 if there was no connection.
    int fd() const noexcept { return fd_; }
    /// Pings in a row that the agent has not answered.
    int missed_pings() const noexcept { return agent_missed_ / 2; }

  private:
    enum class answer { given, none, refused };
    frame_channel* way() const noexcept;
    answer call_launcher();
    void leave_agent();
    void on_agent_frame(std::string_view frame);
    void on_direct_frame(std::string_view frame);
    void on_agent_gone(std::string const& reason);

    event_loop& loop_;
    environment const& variables_;
    std::string host_;
    callbacks calls_;
    std::unique_ptr<frame_channel> agent_;
    std::unique_ptr<frame_channel> direct_;
    duration lost_after_{};
    bool may_leave_ = false;
    bool left_agent_ = false;  ///< all goes over `direct_` from now on
    int fd_ = -1;
    int agent_missed_ = 0;  ///< questions in a row, two to each ping of the launcher, that the agent has not answered
};

// Sends what a rank prints to the launcher.

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
