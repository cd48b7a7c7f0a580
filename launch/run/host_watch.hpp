// Watches the hosts of --host-discovery-script, and has the ranks save where others are there.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "launch/elastic/discovery.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/watch/rank_table.hpp"

namespace muster {

/// The script is asked while the ranks run; a script that fails for a while is no reason to end a run. Ranks that go on in place follow the hosts. Others that can
/// save are asked to, so that the next generation has other slots.
class host_watch {
  public:
    /// What the supervisor of the run knows and does.
    struct supervision {
        std::function<bool()> active;  ///< ranks run, and are not ending
        std::function<bool(host_pool const& hosts)>
            take_in_place;  ///< the ranks themselves follow the hosts; else they are asked to save
        std::function<void(int number, std::function<void(signal_reach const&)> const& tell)> notify;
        std::function<void(std::string const& line)> say;
    };
    /// All of these must outlive it.
    host_watch(event_loop& loop, run_context const& run, supervision calls) : loop_(loop), run_(run), calls_(std::move(calls)) {}

    /// The ranks run from now on. Only where there is a script.
    void start();
    /// What can be done with the hosts that there are.
    void look();

  private:
    void take(discovery_answer const& answer);

    event_loop& loop_;
    run_context const& run_;
    supervision calls_;
    bool faulty_ = false;                     ///< the script's last answer was a fault
    std::string news_;                        ///< that the ranks were told of last
    std::optional<event_loop::timer> cools_;  ///< until a slot has cooled down
};

}  // namespace muster
