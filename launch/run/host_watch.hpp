// Watches the hosts of --host-discovery-script, and has the ranks save where others are there.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "launch/elastic/discovery.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/watch/rank_table.hpp"

namespace muster {

/// The script is asked while the ranks run; a script that fails for a while is no reason to end a run. Ranks that can save are asked to, so that the
/// next generation has other slots.
class host_watch {
  public:
    /// What the supervisor of the run knows and does.
    struct supervision {
        std::function<bool()> active;  ///< ranks run, and are not ending
        std::function<void(int number, std::function<void(signal_reach const&)> const& tell)> notify;
        std::function<void(std::string const& line)> say;
    };
    /// All of these must outlive it.
    host_watch(event_loop& loop, run_context const& run, supervision calls) : loop_(loop), run_(run), calls_(std::move(calls)) {}

    /// The ranks run from now on. Only where there is a script.
    void start();

  private:
    void take(discovery_answer const& answer);
    void look();

    event_loop& loop_;
    run_context const& run_;
    supervision calls_;
    bool faulty_ = false;  ///< the script's last answer was a fault
    std::string news_;     ///< that the ranks were told of last
};

}  // namespace muster
