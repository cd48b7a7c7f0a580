// The process on a rank's node that starts the rank and ends it.
#pragma once

#include <sys/types.h>

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/hardware/topology.hpp"
#include "launch/observe/memory_kills.hpp"
#include "launch/placement/bind_ranks.hpp"
#include "launch/ranks/member_socket.hpp"
#include "launch/ranks/rank_stream.hpp"
#include "launch/samples/node_sampler.hpp"
#include "launch/samples/rank_waits.hpp"
#include "launch/shim/launcher_line.hpp"
#include "launch/shim/shim_guard.hpp"
#include "launch/shim/shim_states.hpp"
#include "launch/system/end_processes.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/system/network.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/messages.hpp"

namespace muster {

/// Started by an engine, once a rank; behind a guard where the engine kills what it has started. Tells the launcher which rank it is,
/// places its rank on this node, holds its ports, and when the launcher says so starts the program as its child, in its own process
/// group, so that what is sent to the group reaches the program too. Then it watches: tells how the program ended, ends what it left
/// behind, passes on signals, and ends the rank when the launcher, the guard or the engine's daemon is gone. It never speaks PMIx or
/// PMI: the program is the one client. What follows an event is in the table of shim_states.hpp.
class rank_shim {
  public:
    /// `variables` are this process' own. Blocks signals; call before any thread is started.
    rank_shim(environment variables, shim_parents parents);
    ~rank_shim();

    /// Runs until the rank and all below it are gone and the launcher has sent wire::bye. Returns this process' exit code.
    int run();

  private:
    /// A scheduler sends its signal to every process of the job: it reaches the rank by the engine and by the launcher, and the second
    /// is dropped.
    struct sent_signal {
        int number = 0;
        event_loop::clock::time_point at{};
        void note(int signal_number);
        bool is_recent(int signal_number) const;
    };

    /// The use of MPI in the processes of the rank, as far as it is known.
    enum class mpi_sight { none, loaded, told };

    // what happens
    void on_event(mpi_event const& event);
    void on_message(wire::job const& job);
    void on_message(wire::go const& go);
    void on_message(wire::signal const& signal);
    void on_message(wire::bye const& bye);
    void on_message(wire::room const& room);
    void on_message(wire::ping const& ping);
    void on_message(wire::inspect const& inspect);
    void on_message(wire::member_packet const& packet) { events_.send(packet.bytes); }
    template <typename Other>
    void on_message(Other const&) {}  // what only a launcher gets
    void on_signal();
    void on_engine_signal(int number);
    void pass_on(int number, noticed whom) noexcept;
    void on_child();
    void on_launcher_gone(std::string const& reason);
    bool parent_is_gone() const;
    void on_parent_gone();
    void detect_mpi();
    void follow_suspension();
    void wake_agent() const;

    // what is done about it
    bool take(shim_event what, int signal_number = 0);
    void act_on(shim_effect what, int signal_number);
    void end_rank(int signal_number);
    void end_leftovers(int signal_number);
    void check_leftovers();
    void report_end();
    void conclude_soon();
    void conclude();
    void say(std::string const& text);
    void tell(wire::message const& message) { line_.tell(message); }
    void tell_end();
    void repeat_end();

    // the program
    void start(wire::go const& go);
    void open_streams();
    void note_output(rank_stream& stream);
    void report_abort();
    std::vector<sampled_rank> rank_to_sample() const;

    unique_fd signals_;  // first: they must be blocked before any member starts a thread, which would take them away
    environment variables_;
    shim_parents parents_;
    pid_t parent_;  ///< the guard, or the daemon
    std::time_t started_;
    std::string host_;
    event_loop loop_;
    launcher_line line_;
    shim_state state_ = shim_state::placing;
    wire::job job_;
    binding binding_;
    std::vector<gpu> sampled_;  ///< the GPUs that this shim tells of
    rank_waits waits_;
    std::optional<node_sampler> sampler_;
    std::optional<held_ports> ports_;
    member_socket events_;  ///< to the rank, where the others may go on without it
    std::optional<rank_stream> out_;
    std::optional<rank_stream> err_;
    std::optional<output_sender> sender_;
    std::optional<output_pump> output_;  ///< after the streams and the sender, which it refers to
    pid_t pid_ = -1;
    std::optional<int> wait_status_;
    std::optional<event_loop::clock::time_point> grace_ends_;  ///< once the rank was asked to end
    sent_signal from_engine_;
    sent_signal from_launcher_;
    memory_kills memory_;  ///< before the rank was started
    int master_port_ = 0;
    rank_stream* last_written_ = nullptr;  ///< the stream that the rank wrote to last
    event_loop::clock::time_point last_output_{};
    event_loop::clock::time_point looked_at_{};  ///< for MPI
    bool asked_to_end_ = false;                  ///< by the engine or the scheduler
    bool dismissed_ = false;                     ///< by the launcher, or it is gone
    bool abort_told_ = false;
    mpi_sight mpi_ = mpi_sight::none;
    int kills_ = 0;
    int exit_code_ = 0;
};

// The place of a rank on its node, and the variables of its program there, as its shim finds them.

struct shim_placement {
    binding where;
    std::vector<gpu> sampled;         ///< the GPUs that this shim tells of
    std::optional<held_ports> ports;  ///< until the program starts
    wire::ready ready;                ///< all that the launcher is to know of it
};

/// Discovers this node with the shim's `variables`, binds the rank as all of the node's are bound, and holds the ports that it is to
/// serve. `launcher_fd`, of a connection to the launcher, names this node's address unless the job does. Throws error where the node
/// cannot hold the ranks.
shim_placement place_rank(wire::job const& job, environment const& variables, int launcher_fd);

/// Returns the environment of the rank's program: the job's variables over the shim's own, and those of its place. Pure, except that
/// it looks at the network's interfaces and at the folders of Python.
environment program_variables(wire::job const& job, wire::go const& go, binding const& where, environment const& shim_variables);

}  // namespace muster
