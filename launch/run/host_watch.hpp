// Watches the hosts of --host-discovery-script, and has the ranks save when the hosts change.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "launch/elastic/host_answers.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/watch/rank_table.hpp"

namespace muster {

/// Asks the script while the ranks run; a script that fails for a while does not end the run. Ranks that go on in place follow
/// the hosts. Other ranks that can save are asked to, so that the next generation gets other slots.
class host_watch {
  public:
    /// Holds what it needs from the run's supervisor.
    struct supervision {
        std::function<bool()> active;  ///< ranks run and are not ending
        std::function<bool(host_pool const& hosts)>
            take_in_place;  ///< the ranks themselves follow the hosts; otherwise they are asked to save
        std::function<void(int number, std::function<void(signal_reach const&)> const& tell)> notify;
        std::function<void(std::string const& line)> say;
    };
    /// All arguments must outlive it.
    host_watch(event_loop& loop, run_context const& run, supervision calls) : loop_(loop), run_(run), calls_(std::move(calls)) {}

    /// Notes that the ranks run. Does nothing without a script.
    void start();
    /// Uses the present hosts as far as possible.
    void look();

  private:
    void take(discovery_answer const& answer);
    void note_unused(std::size_t slots_before);

    event_loop& loop_;
    run_context const& run_;
    supervision calls_;
    script_state script_ = script_state::answers;
    bool noted_unused_ = false;               ///< slots that nobody may use
    std::string news_;                        ///< what the ranks were last told
    std::optional<event_loop::timer> cools_;  ///< until a slot has cooled down
};

}  // namespace muster
