// The process that leads the keepers of a run's nodes: starts them, passes their messages to the state machine, and sends its
// orders to them.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "launch/engine/running_engine.hpp"
#include "launch/keep/machines/keeping.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/messages.hpp"
#include "launch/wire/shim_directions.hpp"
#include "launch/wire/shim_listener.hpp"

namespace muster {

/// The first launcher forks it; it lives as long as the run, over all launchers: `launcher` is its end of a socket pair whose
/// other end the guardian and each launcher have. It starts the keepers separately from the ranks' agents; in Slurm each has its
/// own step, so that a lost node ends only its own keeper. A keeper that is silent for --heartbeat and 10 s is lost, like one
/// whose connection ends. Another takes its place, a few times, with the memory that ranks there still have open.
class keeper_group {
  public:
    /// Makes one keeper for each node of `run.given`. `run` must outlive this. Throws errc::system, errc::unavailable.
    keeper_group(run_plan const& run, unique_fd launcher);
    /// Runs until no launcher is left and all keepers got the order to end.
    void run();

  private:
    void feed(decltype(keeping::event::what) what);
    void act(keeping::act::order const& what);
    void act(keeping::act::start const& what);
    void act(keeping::act::close const& what);
    void act(keeping::act::set_timer const& what);
    void act(keeping::act::say const& what);
    void act(keeping::act::answer const& what);
    void start_keepers(std::vector<keeping::act::start::one> const& whom);
    void on_arrival(wire::hello const& hello, std::unique_ptr<frame_channel>& link);
    void on_word(std::size_t which, std::string_view frame);
    void on_launcher(std::string_view frame);
    void end();
    bool ends() const noexcept { return state_.now == keeping::step_of_arrangement::ended; }

    run_plan const& run_;
    event_loop loop_;
    more_open_files files_;
    keeping::world state_;
    std::deque<keeping::event> events_;  ///< events that the present one has caused
    bool stepping_ = false;
    std::vector<std::unique_ptr<frame_channel>> links_;
    shim_listener listener_;
    std::optional<shim_directions> directions_;
    std::vector<std::unique_ptr<running_engine>> engines_;
    frame_channel launcher_;
    std::string session_dir_;  ///< the present launcher's
};

}  // namespace muster
