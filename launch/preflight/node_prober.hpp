// Starts a probe on each of a run's nodes and gathers what they report.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/engine/running_engine.hpp"
#include "launch/preflight/probed_node.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/messages.hpp"
#include "launch/wire/shim_directions.hpp"
#include "launch/wire/shim_listener.hpp"

namespace muster {

/// One call of probe_nodes. A state machine on one thread: probing -> connecting (all to one node) -> leaving -> done; from each of them to timed_out -> done.
class node_prober {
  public:
    node_prober(run_plan const& run, std::vector<int> const& nodes, choose_first const& first);
    std::vector<probed_node> run();

  private:
    static constexpr duration engine_patience{10};  ///< until the first probe comes
    static constexpr duration final_messages_patience{0.2};
    enum class state { absent, queued, asked, told, connecting, over };
    enum class phase { probing, connecting, leaving, timed_out };
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
    void on_timeout();
    [[noreturn]] void throw_timeout() const;
    void throw_if_engine_failed() const;

    // the engines that start them
    void start_engine(std::vector<std::size_t> const& whom);
    void on_exit(running_engine& engine);
    void on_unreached(running_engine const& engine, std::size_t which, std::string const& why);
    void on_engine_end(running_engine const& engine);
    void queue(std::size_t which);
    void start_queued();
    running_engine const& engine_of(probed_slot const& one) const;
    void end_engines();
    void cancel_step();
    void stop_if_done();

    run_plan const& run_;
    std::vector<int> const& nodes_;
    choose_first const& first_;
    event_loop loop_;
    more_open_files files_;
    shim_listener listener_;
    std::optional<shim_directions> directions_;
    engine_row const* engine_ = nullptr;
    wire::examine question_;          ///< the same for all except for the address
    std::vector<probed_slot> slots_;  ///< in the order of `nodes_`; never grows once the first probe may come
    std::vector<std::unique_ptr<running_engine>> engines_;
    std::deque<std::size_t> alone_;  ///< slots to try by a separate engine
    phase phase_ = phase::probing;
    bool any_arrived_ = false;  ///< a probe of some node has connected
    bool ending_ = false;
    std::optional<event_loop::timer> timer_;
    event_loop::clock::time_point start_ = event_loop::clock::now();
};

}  // namespace muster
