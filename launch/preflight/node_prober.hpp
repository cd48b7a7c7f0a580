// Starts a probe on each of a run's nodes and gathers what they report.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "launch/engine/engine_table.hpp"
#include "launch/preflight/probed_node.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/messages.hpp"
#include "launch/wire/shim_directions.hpp"
#include "launch/wire/shim_listener.hpp"

namespace muster {

// One start of an engine that brings probes to nodes.

/// A running engine and what it prints. Used from the loop's thread, which must not outlive it.
class probe_engine {
  public:
    using exit_callback = std::function<void(probe_engine&)>;
    using unreached_callback = std::function<void(probe_engine const&, std::size_t slot, std::string const& why)>;

    /// Starts `command` for the probes of these numbers. `on_exit` is called once, from the loop, when the process has ended and
    /// so has its output; `on_unreached` for each probe of which the engine says before that it will not come (unreached_host). Throws
    /// errc::system, program_error.
    probe_engine(event_loop& loop, engine_command const& command, more_open_files const& files, std::vector<std::size_t> slots,
                 exit_callback on_exit, unreached_callback on_unreached);
    ~probe_engine();
    probe_engine(probe_engine const&) = delete;
    probe_engine& operator=(probe_engine const&) = delete;

    std::vector<std::size_t> const& slots() const noexcept { return slots_; }
    bool brings(std::size_t slot) const noexcept;
    bool ended() const noexcept { return ended_; }
    int status() const noexcept { return status_; }  ///< of waitpid, once it has ended

    /// ": " and what it printed about this node, else its last lines; two lines at most, empty if it printed nothing.
    std::string quote(std::string const& node) const;
    /// ": " and the lines that name this node, the last four; empty if no line does.
    std::string quote_lines(std::string const& node) const;

    /// To its whole process group, also if that is stopped. Nothing if it has ended.
    void kill(int signal_number) const;

  private:
    void on_output();
    void take_unreached();
    void reap();

    event_loop& loop_;
    std::vector<std::size_t> slots_;
    exit_callback on_exit_;
    unreached_callback on_unreached_;
    pid_t pid_ = -1;
    unique_fd output_;
    std::string said_;
    std::size_t read_ = 0;  ///< so many bytes of it have been looked at
    bool ended_ = false;
    int status_ = 0;
};

/// One call of probe_nodes. A state machine on one thread: probing -> connecting (all to one node) -> leaving -> done.
class node_prober {
  public:
    node_prober(run_context const& run, std::vector<int> const& nodes, choose_first const& first);
    std::vector<probed_node> run();

  private:
    static constexpr duration engine_patience{10};  ///< until the first probe is there
    static constexpr duration final_messages_patience{0.2};
    enum class state { absent, queued, asked, told, connecting, over };
    enum class phase { probing, connecting, leaving };
    /// One node and the probe on it.
    struct probed_slot {
        int node = 0;
        probed_node found{};
        std::unique_ptr<frame_channel> link{};
        state now = state::absent;
        double asked_at = 0;
        std::string step{};
    };

    // probes
    probed_slot* who_is(wire::hello const& hello);
    void on_arrival(wire::hello const& hello, std::unique_ptr<frame_channel>& link);
    void on_frame(probed_slot& one, std::string_view frame);
    static void compare_clocks(probed_node& found, double asked_at, double answered_at);
    void on_report(probed_slot& one, node_report report);
    void on_link_lost(probed_slot& one, std::string const& reason);
    static void give_up(probed_slot& one, std::string const& why);
    void wait_for(duration patience);
    bool any(state now) const;
    void on_deadline();
    void go_on();
    void try_connections();
    void leave();
    void throw_if_engine_failed() const;

    // the engines that start them
    void start_engine(std::vector<std::size_t> const& whom);
    void on_exit(probe_engine& engine);
    void on_unreached(probe_engine const& engine, std::size_t which, std::string const& why);
    void on_engine_end(probe_engine const& engine);
    void queue(std::size_t which);
    void start_queued();
    probe_engine const& engine_of(probed_slot const& one) const;
    void end_engines();
    void cancel_step();
    void stop_if_done();

    run_context const& run_;
    std::vector<int> const& nodes_;
    choose_first const& first_;
    event_loop loop_;
    more_open_files files_;
    shim_listener listener_;
    std::optional<shim_directions> directions_;
    engine_row const* engine_ = nullptr;
    wire::examine question_;          ///< the same for all except for the address
    std::vector<probed_slot> slots_;  ///< in the order of `nodes_`; never grows once the first probe may come
    std::vector<std::unique_ptr<probe_engine>> engines_;
    std::deque<std::size_t> alone_;  ///< to be tried by a separate engine
    phase phase_ = phase::probing;
    bool any_arrived_ = false;  ///< a probe of some node has connected
    bool ending_ = false;
    std::optional<event_loop::timer> timer_;
    event_loop::clock::time_point start_ = event_loop::clock::now();
};

}  // namespace muster
